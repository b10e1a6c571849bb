// Ask: drop images, see what they are and why, correct an answer.

import { batches, post, splitBySize, upload } from "./api.js";
import { QUESTION, card } from "./card.js";
import { $, attempt, h, plural, say } from "./dom.js";
import { dropZone } from "./dropzone.js";
import { csvCell } from "./escaping.js";
import { store, untilQuiet } from "./store.js";

const MOST_CARDS = 200;
const AT_ONCE = 24; // images in one request, so that a click hardly waits for it

const asked = []; // {file, answer, card}: newest drop first
let parts = null;

export const ask = {
  show(section) {
    if (!parts) build(section);
    parts.zone.hidden = !store.info?.classes;
    parts.empty.hidden = Boolean(store.info?.classes);
    return refreshOutdated();
  },
  take,
};

function build(section) {
  parts = {
    zone: dropZone({ title: "Drop images or a folder", hint: "or paste an image. Answers come with their evidence.", take, first: "images" }),
    empty: h(
      "div",
      { className: "empty" },
      h("h2", {}, "Nothing to choose from yet"),
      h("p", {}, "A model answers with the classes that you taught it. Start with a few images of two classes."),
      h("p", {}, h("a", { className: "button main", href: "#teach" }, "Teach the first classes")),
    ),
    progress: h("progress", { hidden: true, "aria-label": "Images asked" }),
    summary: h("p", { className: "summary", role: "status" }),
    cards: h("ul", { className: "cards", "aria-label": "Answers" }),
  };
  section.replaceChildren(h("h2", { className: "visually-hidden" }, "Ask"), ...Object.values(parts));
}

async function take(items) {
  if (!store.info?.classes) {
    say("The model has no classes yet. Teach it some first.");
    return;
  }
  await attempt(async () => {
    const { fitting, tooLarge } = splitBySize(items, store.info.limits);
    let done = tooLarge.length;
    if (done) draw(tooLarge.map(({ problem, ...item }) => ({ ...item, answer: { name: item.path, image: null, problem, candidates: [] } })));
    Object.assign(parts.progress, { hidden: false, max: items.length, value: done });
    for (const batch of batches(fitting, store.info.limits)) {
      const { answers, model } = await upload(`classify?${QUESTION}`, batch);
      draw(answers.map((answer, number) => ({ ...batch[number], answer, model })));
      done += batch.length;
      parts.progress.value = done;
    }
  });
  parts.progress.hidden = true;
}

function draw(fresh) {
  asked.unshift(...fresh);
  for (const item of fresh) item.card = card(item);
  parts.cards.prepend(...fresh.map((item) => item.card.element));
  for (const item of asked.slice(MOST_CARDS)) item.card?.element.remove();
  summarise();
}

let renewing = false;

/** Ask the changed model again about all images, first about those on the screen. */
async function refreshOutdated() {
  if (renewing) return; // the next round sees the newest model
  renewing = true;
  try {
    while (outdated().length && store.info.classes) {
      await untilQuiet();
      await renew(outdated().slice(0, AT_ONCE));
    }
  } finally {
    renewing = false;
  }
}

function outdated() {
  const found = asked.filter((item) => item.answer.image && item.model !== store.info.model);
  const near = found.filter(({ card: { element } }) => {
    const { top, bottom } = element.getBoundingClientRect();
    return element.isConnected && bottom > 0 && top < innerHeight;
  });
  return near.length ? near : found;
}

async function renew(items) {
  const { model } = store.info;
  const before = items.map((item) => item.model);
  const { answers } = await post(`answers?${QUESTION}`, { images: items.map((item) => item.answer.image) });
  items.forEach((item, number) => {
    if (item.model !== before[number]) return; // it was corrected meanwhile, so it has a newer answer
    item.model = model;
    item.card.update({ ...answers[number], name: item.answer.name });
  });
  summarise();
}

function summarise() {
  parts.zone.classList.toggle("small", asked.length > 0);
  const counts = new Map();
  for (const { answer } of asked) {
    const best = answer.candidates[0]?.label ?? "not usable";
    counts.set(best, (counts.get(best) ?? 0) + 1);
  }
  const most = [...counts].sort((one, two) => two[1] - one[1]);
  parts.summary.replaceChildren(
    h("span", {}, `${plural(asked.length, "image")}: `, most.slice(0, 6).map(([label, count]) => `${count} ${label}`).join(", "), most.length > 6 ? ", …" : ""),
    h("button", { className: "plain", onclick: save }, "Save as CSV"),
    h("button", { className: "plain", onclick: clear }, "Clear"),
  );
}

function clear() {
  for (const item of asked) item.card.discard();
  asked.length = 0;
  parts.cards.replaceChildren();
  parts.summary.replaceChildren();
  parts.zone.classList.remove("small");
  parts.zone.querySelector("button").focus();
}

function save() {
  const lines = asked.map(({ path, answer }) => {
    const best = answer.candidates[0];
    return [path, best?.label ?? "", best?.probability.toFixed(4) ?? "", answer.unknown ? "unknown" : "", answer.problem ?? ""].map(csvCell).join(",");
  });
  const url = URL.createObjectURL(new Blob([["image,label,probability,unknown,problem", ...lines].join("\n")], { type: "text/csv" }));
  h("a", { href: url, download: "answers.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
