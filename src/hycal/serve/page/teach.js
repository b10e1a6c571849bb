// Teach: drop a folder of class folders, look at what will be learned, learn it in one step.

import { batches, post, splitBySize, upload } from "./api.js";
import { attempt, classes, h, plural, say } from "./dom.js";
import { dropZone } from "./dropzone.js";
import { groupByClass } from "./files.js";
import { applyReceipt, store, undoAction } from "./store.js";

let parts = null;

export const teach = {
  show(section) {
    if (!parts) build(section);
    parts.lesson.hidden = Boolean(store.info?.classes);
  },
  take,
};

function build(section) {
  parts = {
    lesson: lesson(),
    zone: dropZone({ title: "Drop a folder of class folders", hint: "A few images of each class are enough; more are better.", take, first: "folder" }),
    plan: h("div", { className: "plan" }),
  };
  section.replaceChildren(h("h2", { className: "visually-hidden" }, "Teach"), ...Object.values(parts));
}

function lesson() {
  return h(
    "div",
    { className: "lesson" },
    h("h2", {}, "Teach it what you see"),
    h(
      "ol",
      {},
      h("li", {}, h("strong", {}, "Sort"), " a few images into folders, one for each class."),
      h("li", {}, h("strong", {}, "Drop"), " the folder that holds them: it becomes a domain."),
      h("li", {}, h("strong", {}, "Ask"), " with any image, and correct the answer if it is wrong. It learns at once."),
    ),
    h("pre", { "aria-label": "An example of folders" }, "flowers/\n├─ rose/   1.jpg 2.jpg 3.jpg\n└─ tulip/  1.jpg 2.jpg 3.jpg"),
  );
}

async function take(items) {
  const found = await attempt(() => groupByClass(items));
  if (!found) return;
  const { groups, left, loose } = found;
  for (const shown of [...parts.plan.children]) if (!shown.classList.contains("running")) shown.remove();
  if (!groups.length) {
    say("These are all test images, and only others are learned.");
    return;
  }
  const rows = groups.map(row);
  const learnButton = h("button", { className: "main" });
  const count = () => {
    const wanted = rows.filter((one) => one.element.isConnected);
    const images = wanted.reduce((sum, one) => sum + one.items.length, 0);
    learnButton.textContent = `Learn ${plural(images, "image")} of ${classes(wanted.length)}`;
    learnButton.disabled = !wanted.length;
  };
  const form = h(
    "form",
    { onsubmit: (event) => { event.preventDefault(); start(form, rows.filter((one) => one.element.isConnected)); } },
    h("h3", {}, "This is what it will learn"),
    left + loose > 0 && h("p", { className: "quiet" }, `Left out: ${[left && `${plural(left, "image")} in test folders`, loose && `${plural(loose, "file")} in no class folder`].filter(Boolean).join(", ")}.`),
    h("ul", { className: "lessons" }, rows.map((one) => one.element)),
    h("p", { className: "buttons" }, learnButton, h("button", { type: "button", className: "soft", onclick: () => form.remove() }, "Cancel")),
  );
  parts.plan.append(form);
  form.addEventListener("removed", count);
  count();
  (form.querySelector("input:placeholder-shown") ?? learnButton).focus();
  form.scrollIntoView({ block: "nearest", behavior: "smooth" });
}

/** One class to learn: its domain and name can be changed, and it can be left out. */
function row({ domain, name, items }) {
  const field = (value, label, placeholder) => h("input", { value, "aria-label": label, placeholder, required: true, pattern: label === "Domain" ? "[^\\/]+" : undefined, maxLength: 90 });
  const known = store.classes.filter((one) => one.name === name); // a class alone says its domain where only one has it
  const domainField = field(domain || (known.length === 1 ? known[0].domain : ""), "Domain", "domain, such as flowers");
  const nameField = field(name, "Class", "class, such as rose");
  const element = h(
    "li",
    {},
    h("span", { className: "previews", "aria-hidden": "true" }, items.slice(0, 3).map(preview)),
    h("span", { className: "fields" }, domainField, "/", nameField),
    h("span", { className: "quiet" }, plural(items.length, "image")),
    h("button", { type: "button", className: "plain", "aria-label": `Leave out ${name}`, onclick: () => { const form = element.closest("form"); element.remove(); form.dispatchEvent(new Event("removed")); } }, "×"),
  );
  return { element, items, label: () => `${domainField.value.trim()}/${nameField.value.trim()}` };
}

function preview({ file }) {
  const url = URL.createObjectURL(file);
  return h("img", { className: "thumb", src: url, alt: "", width: 48, height: 48, onload: () => URL.revokeObjectURL(url), onerror: (event) => event.target.remove() });
}

async function start(form, rows) {
  const stop = new AbortController();
  const all = rows.flatMap((one) => one.items.map((item) => ({ ...item, label: one.label() })));
  const { tray } = store.info.limits;
  if (all.length > tray) {
    say(`${plural(all.length, "image")} are more than the server keeps, ${tray.toLocaleString("en")}. Leave some classes out and teach them next, or learn the folder by \`hycal learn\`.`, { bad: true });
    return;
  }
  const bar = h("progress", { max: all.length, value: 0, "aria-label": "Images sent and embedded" });
  const text = h("p", { className: "quiet", role: "status" }, `0 of ${plural(all.length, "image")}`);
  const running = h("div", { className: "running" }, bar, text, h("button", { className: "soft", onclick: () => stop.abort() }, "Stop"));
  form.replaceWith(running);
  const outcome = await attempt(() => sendAndLearn(all, bar, text, stop.signal));
  running.replaceWith(outcome ? report(outcome) : form);
}

async function sendAndLearn(all, bar, text, signal) {
  const began = performance.now();
  const { fitting, tooLarge } = splitBySize(all, store.info.limits);
  const known = new Map(); // by content hash: the first file of that content
  const skipped = tooLarge.map(({ path, problem }) => ({ name: path, reason: problem }));
  let done = tooLarge.length;
  for (const batch of batches(fitting, store.info.limits)) {
    const { images } = await upload("images", batch, signal);
    images.forEach(({ image, name, problem }, number) => {
      if (problem) skipped.push({ name, reason: problem });
      else if (known.has(image)) skipped.push({ name, reason: `the same image as ${known.get(image).path}, which is ${known.get(image).label}` });
      else known.set(image, batch[number]);
    });
    done += batch.length;
    bar.value = done;
    const rate = done / ((performance.now() - began) / 1000);
    text.textContent = `${done.toLocaleString("en")} of ${plural(all.length, "image")} · ${rate.toFixed(0)} a second`;
  }
  if (!known.size) throw new Error(`None of these files can be used. The first: ${skipped[0].name}: ${skipped[0].reason}.`);
  const receipt = await post("learn", { labels: Object.fromEntries([...known].map(([image, { label }]) => [image, label])) });
  await applyReceipt(receipt);
  return { receipt, skipped: [...skipped, ...receipt.skipped], seconds: (performance.now() - began) / 1000 };
}

function report({ receipt, skipped, seconds }) {
  const images = Object.values(receipt.images).reduce((sum, count) => sum + count, 0);
  const headline = images
    ? `Learned ${plural(images, "image")} of ${classes(Object.keys(receipt.images).length)}`
    : "Nothing new in there: every image was known already";
  say(`${headline}.`, undoAction(receipt));
  return h(
    "div",
    { className: "report" },
    h("h3", {}, headline),
    h("p", { className: "quiet" }, `${seconds.toFixed(1)} s in all, of which ${receipt.milliseconds.changing.toFixed(0)} ms to learn and keep.`),
    skipped.length > 0 && h("details", {}, h("summary", {}, `${plural(skipped.length, "file")} left out`), h("ul", {}, skipped.slice(0, 200).map(({ name, reason }) => h("li", {}, `${name}: ${reason}`)))),
    h("p", { className: "buttons" }, h("a", { className: "button main", href: "#ask" }, "Ask it something"), h("a", { className: "button soft", href: "#classes" }, "See the classes")),
  );
}
