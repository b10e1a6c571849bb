// Camera: live answers below the picture; hold a button to teach what it shows.

import { post, upload } from "./api.js";
import { attempt, fill, h, labelElement, plural, say, sureness } from "./dom.js";
import { classFields } from "./labels.js";
import { applyReceipt, store, undoAction } from "./store.js";

const SIDE = 320; // pixels of the shorter side of a frame that is sent: encoders look at 224
const ANSWER_EVERY = 400; // milliseconds
const TEACH_EVERY = 200;
const MOST_FRAMES = 40; // of one burst: more pictures of the same second teach nothing

let parts = null;
let stream = null;
let burst = null; // frames, while the button is held

export const camera = {
  show(section) {
    if (!parts) build(section);
  },
  leave: stop,
};

function build(section) {
  parts = {
    video: h("video", { muted: true, playsInline: true, "aria-label": "Camera" }),
    answer: h("p", { className: "live", role: "status" }),
    start: h("button", { className: "main", onclick: () => attempt(start) }, "Start the camera"),
    label: classFields({ name: "Class to teach", changed: update }),
    teach: h("button", { className: "main teaching", disabled: true }, "Hold to teach"),
  };
  const { video, answer, start: button, label, teach } = parts;
  teach.addEventListener("pointerdown", hold);
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) teach.addEventListener(end, release);
  teach.addEventListener("keydown", (event) => { if (event.key === " " && !event.repeat) hold(event); });
  teach.addEventListener("keyup", (event) => { if (event.key === " ") release(); });
  section.replaceChildren(
    h("h2", {}, "Camera"),
    h("p", { className: "quiet" }, "Pictures go to the machine that runs hycal and no further. Move the object while you teach: twenty frames of one view count as little more than one picture."),
    h("div", { className: "viewfinder" }, video, answer),
    h("p", { className: "buttons" }, button, ...label.fields, teach),
    label.hint,
  );
}

async function start() {
  if (stream) {
    stop();
    return;
  }
  if (!navigator.mediaDevices) throw new Error("This browser gives the camera to pages on localhost and https only.");
  stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } }).catch((error) => {
    throw new Error(`The camera cannot be used: ${error.message}. Check that it is connected and that this page may use it.`);
  });
  parts.video.srcObject = stream;
  await parts.video.play();
  parts.start.textContent = "Stop the camera";
  parts.start.className = "soft";
  update();
  watch(stream);
}

function stop() {
  for (const track of stream?.getTracks() ?? []) track.stop();
  stream = burst = null;
  if (!parts) return;
  parts.video.srcObject = null;
  parts.answer.replaceChildren();
  parts.start.textContent = "Start the camera";
  parts.start.className = "main";
  update();
}

function update() {
  parts.teach.disabled = !stream || !meantLabel();
}

const meantLabel = () => parts.label.label();

/** Return the present frame as a JPEG file. */
function frame(name) {
  const { videoWidth: width, videoHeight: height } = parts.video;
  const scale = Math.min(1, SIDE / Math.min(width, height));
  const canvas = h("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(parts.video, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob((blob) => done({ file: new File([blob], name, { type: "image/jpeg" }), path: name }), "image/jpeg", 0.9));
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Answer frame after frame while this stream is on; one question at a time. */
async function watch(own) {
  while (stream === own) {
    if (!burst && store.info.classes) await attempt(async () => show((await upload("classify?top=3", [await frame("camera.jpg")])).answers[0]));
    await pause(ANSWER_EVERY);
  }
}

function show({ candidates, unknown, problem }) {
  if (!stream || burst) return;
  const named = candidates.map((one) => h("span", { className: "candidate" }, labelElement(one.label), ` ${sureness(one, candidates)} `));
  fill(parts.answer, problem ?? [unknown && h("strong", { className: "unlike" }, "Unlike anything learned; nearest "), ...named]);
}

async function hold(event) {
  event.preventDefault();
  if (burst || parts.teach.disabled) return;
  const own = (burst = []);
  const began = Date.now();
  while (burst === own && own.length < MOST_FRAMES) {
    own.push(await frame(`camera-${began}-${own.length + 1}.jpg`));
    fill(parts.answer, `${plural(own.length, "frame")} of ${meantLabel()}`);
    await pause(TEACH_EVERY);
  }
}

async function release() {
  if (!burst) return;
  const [frames, label] = [burst, meantLabel()];
  burst = null;
  if (frames.length) await attempt(() => learn(frames, label));
}

async function learn(frames, label) {
  const sent = [];
  for (let start = 0; start < frames.length; start += store.info.limits.images) {
    sent.push(...(await upload("images", frames.slice(start, start + store.info.limits.images))).images);
  }
  const receipt = await post("learn", { labels: Object.fromEntries(sent.filter(({ image }) => image).map(({ image }) => [image, label])) });
  await applyReceipt(receipt);
  const count = Object.values(receipt.images).reduce((sum, one) => sum + one, 0);
  say(count ? `Learned ${plural(count, "frame")} of ${label}.` : "Nothing new: every frame was known already.", undoAction(receipt));
}
