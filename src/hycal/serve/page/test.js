// Test: drop labelled images that were not learned, see the accuracy of each class and what is confused with what.

import { batches, splitBySize, upload } from "./api.js";
import { attempt, h, labelElement, percent, plural, say, split, sureness } from "./dom.js";
import { dropZone } from "./dropzone.js";
import { groupByClass } from "./files.js";
import { store } from "./store.js";

const MOST_WRONG = 60; // wrong answers that are shown
const Z = 1.645; // of a 90 % interval

let parts = null;

export const test = {
  show(section) {
    if (!parts) build(section);
    parts.zone.hidden = store.classes.length < 2;
    parts.few.hidden = store.classes.length >= 2;
  },
  take,
};

function build(section) {
  parts = {
    zone: dropZone({ title: "Drop a folder of labelled test images", hint: "Class folders as in Teach. Nothing is learned from them; of a folder with splits, test and val are used.", take, first: "folder" }),
    few: h("p", { className: "empty" }, "A test needs two classes. ", h("a", { href: "#teach" }, "Teach some.")),
    result: h("div", { className: "plan" }),
  };
  section.replaceChildren(h("h2", { className: "visually-hidden" }, "Test"), ...Object.values(parts));
}

async function take(items) {
  if (store.classes.length < 2) {
    say("The model has fewer than two classes. Teach it some first.");
    return;
  }
  const found = await attempt(() => groupByClass(items, (split) => split !== "train"));
  if (!found) return;
  const { groups, left, loose } = found;
  const known = groups.map((group) => ({ ...group, label: knownLabel(group) }));
  const asked = known.filter(({ label }) => label).flatMap(({ label, items: images }) => images.map((item) => ({ ...item, truth: label })));
  const omitted = [
    left && `${plural(left, "image")} of the training split`,
    loose && `${plural(loose, "file")} in no class folder`,
    ...known.filter(({ label }) => !label).map(({ domain, name }) => `${domain ? `${domain}/` : ""}${name}, which the model has not learned`),
  ].filter(Boolean);
  if (!asked.length) {
    say(`There is nothing to test in there${omitted.length ? `: ${omitted.slice(0, 3).join("; ")}` : ""}.`, { bad: true });
    return;
  }
  const stop = new AbortController();
  const bar = h("progress", { max: asked.length, value: 0, "aria-label": "Images tested" });
  parts.result.replaceChildren(h("div", { className: "running" }, bar, h("button", { className: "soft", onclick: () => stop.abort() }, "Stop")));
  const tested = await attempt(() => classifyAll(asked, bar, stop.signal));
  parts.result.replaceChildren(...(tested ? [report(tested, omitted)] : []));
}

/** Return the label of a group among the learned classes: the same label, or the only class of that name. */
function knownLabel({ domain, name }) {
  const exact = store.classes.find(({ label }) => label === `${domain}/${name}`);
  const alike = store.classes.filter((one) => one.name === name);
  return exact?.label ?? (alike.length === 1 ? alike[0].label : undefined);
}

async function classifyAll(asked, bar, signal) {
  const { fitting, tooLarge } = splitBySize(asked, store.info.limits);
  const tested = tooLarge.map((item) => ({ ...item, answer: { problem: item.problem } }));
  for (const batch of batches(fitting, store.info.limits)) {
    const { answers } = await upload("classify?top=2", batch, signal);
    tested.push(...answers.map((answer, number) => ({ ...batch[number], answer })));
    bar.value = tested.length;
  }
  return tested;
}

const chosen = ({ answer }) => answer.candidates[0].label;

function report(tested, omitted) {
  const judged = tested.filter(({ answer }) => !answer.problem);
  const wrong = judged.filter((item) => chosen(item) !== item.truth);
  const learned = judged.filter(({ answer }) => answer.learned_as).length;
  const unknown = judged.filter(({ answer }) => answer.unknown).length;
  const [low, high] = interval(judged.length - wrong.length, judged.length);
  return h(
    "div",
    { className: "report" },
    h("h3", {}, judged.length ? `${percent((judged.length - wrong.length) / judged.length)} right: ${judged.length - wrong.length} of ${plural(judged.length, "image")}` : "None of these images can be used"),
    judged.length > 0 && h("p", { className: "quiet" }, `More such images would give ${percent(low)} to ${percent(high)} (90 % interval). ${plural(unknown, "image")} looked unlike anything learned.`),
    learned > 0 && h("p", { className: "unlike" }, `${plural(learned, "image")} of these were learned, so the accuracy is too high.`),
    omitted.length > 0 && h("details", {}, h("summary", {}, "What was left out"), h("ul", {}, omitted.slice(0, 200).map((text) => h("li", {}, text)))),
    unusable(tested),
    h("ul", { className: "bars", "aria-label": "Accuracy of each class" }, classBars(judged)),
    wrong.length > 0 && h("h3", {}, `${plural(wrong.length, "wrong answer")}`),
    wrong.length > 0 && h("ul", { className: "wrong" }, wrong.slice(0, MOST_WRONG).map(wrongAnswer)),
  );
}

function unusable(tested) {
  const broken = tested.filter(({ answer }) => answer.problem);
  return broken.length > 0 && h("details", {}, h("summary", {}, `${plural(broken.length, "file")} cannot be used`), h("ul", {}, broken.slice(0, 200).map(({ path, answer }) => h("li", {}, `${path}: ${answer.problem}`))));
}

/** One line for each class, the least accurate first. */
function classBars(judged) {
  const found = new Map();
  for (const item of judged) {
    const { right, taken } = found.get(item.truth) ?? found.set(item.truth, { right: [], taken: new Map() }).get(item.truth);
    right.push(chosen(item) === item.truth);
    if (chosen(item) !== item.truth) taken.set(chosen(item), (taken.get(chosen(item)) ?? 0) + 1);
  }
  const share = ({ right }) => right.filter(Boolean).length / right.length;
  return [...found].sort((one, two) => share(one[1]) - share(two[1])).map(([label, { right, taken }]) => {
    const most = [...taken].sort((one, two) => two[1] - one[1])[0];
    return h("li", { data: { label } },
      labelElement(label),
      h("meter", { min: 0, max: 1, low: 0.6, high: 0.85, optimum: 1, value: share({ right }), "aria-label": `${label}: ${percent(share({ right }))}` }),
      h("span", {}, `${right.filter(Boolean).length} of ${right.length}`),
      h("span", { className: "quiet" }, most ? `${most[1]} taken for ${split(most[0])[1]}` : ""));
  });
}

function wrongAnswer(item) {
  const url = URL.createObjectURL(item.file);
  return h("li", { title: item.path }, h("img", { className: "thumb", src: url, alt: item.path, width: 48, height: 48, onload: () => URL.revokeObjectURL(url) }),
    h("span", {}, split(item.truth)[1], h("small", { className: "quiet" }, ` taken for ${split(chosen(item))[1]}, ${sureness(item.answer.candidates[0], item.answer.candidates)}`)));
}

/** Return the Wilson interval of a share. */
function interval(right, total) {
  const centre = (right + (Z * Z) / 2) / (total + Z * Z);
  const reach = (Z / (total + Z * Z)) * Math.sqrt((right * (total - right)) / total + (Z * Z) / 4);
  return [Math.max(0, centre - reach), Math.min(1, centre + reach)];
}
