// Model: the method and the encoder in use, what each other one would bring and cost, and the change to it.

import { get } from "./api.js";
import { attempt, h, percent } from "./dom.js";
import { change, store } from "./store.js";

let parts = null;
let measured = { model: "", trials: new Map() }; // by method, for the images of one model
let stop = null; // while all methods are measured

export const model = {
  async show(section) {
    if (!parts) build(section);
    if (measured.model !== store.info.model) measured = { model: store.info.model, trials: new Map() };
    draw(await get("choices"));
  },
  leave: () => stop?.abort(),
};

function build(section) {
  parts = {
    cost: h("p", { className: "quiet" }, "The method turns embeddings into answers. Another one uses the same images: nothing is embedded again, and Undo takes it back. Measure shows how often it is right on the learned images, each judged by a model without it, and the seconds that learning and judging take."),
    all: h("p", { className: "buttons", hidden: true }, h("button", { className: "soft", onclick: measureAll }, "Measure all")),
    methods: h("ul", { className: "choices-list", "aria-label": "Methods" }),
    encoderTitle: h("h2", {}, "Encoder"),
    why: h("div", { className: "quiet why" }),
    encoders: h("ul", { className: "choices-list", "aria-label": "Encoders" }),
  };
  section.replaceChildren(h("h2", {}, "Method"), ...Object.values(parts));
}

function draw({ methods, encoders, encoder_is_free: free }) {
  const { method, encoder, classes } = store.info;
  parts.all.hidden = classes < 2;
  parts.methods.replaceChildren(...methods.map((one) => choice({
    ...one, own: one.name === method, ready: !one.problem, use: () => useMethod(one.name),
    more: h("span", { className: "measured", data: { method: one.name } }, ...trialText(one.name)),
    measure: classes > 1 && !one.problem && (() => attempt(() => measure(one.name))),
  })));
  const own = encoder.split("+").every((part) => encoders.some(({ name }) => name === part)) ? [] : [{ name: encoder, summary: "the encoder of this model", ready: true }];
  const used = encoder.split("+"); // the views of a combined encoder
  parts.encoders.replaceChildren(...[...own, ...encoders].map((one) => choice({
    ...one, own: used.includes(one.name), problem: problemOf(one), ready: free && one.ready,
    use: () => useEncoders([one.name]),
    join: free && one.ready && !used.includes(one.name) && (() => useEncoders([...used, one.name])),
    leave: free && used.length > 1 && used.includes(one.name) && (() => useEncoders(used.filter((name) => name !== one.name))),
  })));
  parts.why.replaceChildren(...(free ? [h("p", {}, "The encoder turns images into embeddings. It is free until the first image is learned.")] : keptEncoder(encoder)));
}

function problemOf({ name, ready }) {
  const missing = store.info.missing_views[name];
  if (missing) return `Its view is missing in images that are sent: ${missing}`;
  return !ready && ["Not installed: ", h("code", {}, `hycal encoders get ${name}`), " where the server runs."];
}

function useEncoders(names) {
  const encoder = names.join("+");
  return change("encoder", { encoder }, () => `Images are embedded by ${names.join(" and ")} from now on.`);
}

function keptEncoder(encoder) {
  return [
    h("p", {}, `The encoder turns images into embeddings. This model holds embeddings of ${encoder}, not the images, and those of two encoders cannot be compared: another encoder needs the images again, in a new model.`),
    h("p", {}, "To add the view of another encoder to this model, with the images at hand: ", h("code", {}, `hycal views ${store.info.name} --add NAME --images FOLDER`)),
    h("p", {}, "To measure first whether it would pay: ", h("code", {}, `hycal methods ${store.info.name} --images FOLDER --encoder NAME`)),
    h("p", {}, "To change: ", h("code", {}, "hycal learn NEW.hycal FOLDER --encoder NAME"), " or ", h("code", {}, "hycal serve NEW.hycal --encoder NAME"), ", and drop the folders there."),
  ];
}

function choice({ name, summary, problem, own, ready, use, more, join, leave, measure: measuring }) {
  return h(
    "li",
    { className: own ? "own" : "", data: { name } },
    h("div", {}, h("strong", {}, name), own && h("span", { className: "tag" }, "in use"), h("p", { className: "quiet" }, summary), problem && h("p", { className: "quiet" }, problem), more),
    h("span", { className: "actions" },
      measuring && h("button", { className: "plain", "aria-label": `Measure ${name}`, onclick: measuring }, "Measure"),
      join && h("button", { className: "plain", "aria-label": `Add ${name}`, title: "Embed images by both, each a view", onclick: join }, "Add"),
      leave && h("button", { className: "plain", "aria-label": `Leave out ${name}`, onclick: leave }, "Leave out"),
      !own && ready && h("button", { className: "soft", "aria-label": `Use ${name}`, onclick: use }, "Use")),
  );
}

async function useMethod(name) {
  const kept = measured.trials;
  await change("method", { method: name }, (receipt) => {
    measured = { model: receipt.after, trials: kept }; // the images are the same
    return `${name} answers from now on.`;
  });
}

function trialText(name) {
  const trial = measured.trials.get(name);
  if (!trial) return [];
  if (trial.running) return ["measuring…"];
  if (trial.problem) return [trial.problem];
  const { overall, estimate, seconds } = trial;
  return [h("strong", {}, percent(overall.right / overall.total)), ` right, ${overall.right} of ${overall.total}; on new images ${percent(estimate.low)} to ${percent(estimate.high)} · ${seconds < 0.1 ? "under 0.1" : seconds.toFixed(seconds < 10 ? 1 : 0)} s`];
}

function show(name) {
  parts.methods.querySelector(`[data-method="${CSS.escape(name)}"]`)?.replaceChildren(...trialText(name));
}

async function measure(name) {
  const { trials } = measured;
  trials.set(name, { running: true });
  show(name);
  try {
    trials.set(name, await get(`trial?method=${encodeURIComponent(name)}`));
  } catch (error) {
    trials.delete(name);
    throw error;
  } finally {
    show(name);
  }
}

/** Measure one method after the other; the button stops it after the present one. */
async function measureAll({ target: button }) {
  if (stop) {
    stop.abort();
    return;
  }
  const { signal } = (stop = new AbortController());
  const { model: began } = measured;
  button.textContent = "Stop";
  const names = [...parts.methods.querySelectorAll("[aria-label^='Measure ']")].map((one) => one.closest("li").dataset.name);
  for (const name of names) {
    if (signal.aborted || measured.model !== began) break;
    if (!measured.trials.has(name)) await attempt(() => measure(name));
  }
  stop = null;
  button.textContent = "Measure all";
}
