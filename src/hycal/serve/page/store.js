// What every view knows of the model. The document gets the event "model" when it has changed.

import { get, post } from "./api.js";
import { $, attempt, classes, fill, h, plural, say } from "./dom.js";
import { readable } from "./escaping.js";

export const store = { info: null, classes: [] };

const QUIET = 300; // milliseconds after a change without requests in the background
let changedAt = -QUIET;

/** Wait until the model has not changed for a moment: a person may be correcting one answer after the other. */
export async function untilQuiet() {
  const left = () => changedAt + QUIET - performance.now();
  while (left() > 0) await new Promise((done) => setTimeout(done, left()));
}

export async function refresh() {
  const [info, table] = await Promise.all([get("info"), get("classes")]);
  store.info = info;
  store.classes = table.classes;
  $("labels").replaceChildren(...options(table.classes));
  changed();
}

/** Update the classes from the receipt of a change. Classes that it did not touch stay the same objects. */
export async function applyReceipt({ before, after, info, rows, gone }) {
  if (before === after) return;
  if (store.info?.model !== before || info.model !== after) {
    await refresh(); // somebody else has changed the model too
    return;
  }
  const known = new Map(store.classes.map((one) => [one.label, one]));
  for (const label of gone) known.delete(label);
  const fresh = rows.filter(({ label }) => !known.has(label));
  for (const one of rows) known.set(one.label, one);
  store.info = info;
  store.classes = [...known.values()];
  if (fresh.length) store.classes.sort((one, two) => (one.label < two.label ? -1 : 1));
  for (const label of gone) $("labels").querySelector(`[value="${CSS.escape(label)}"]`)?.remove();
  $("labels").append(...options(fresh));
  changed();
}

/** Make the options of an input for labels, without those that nobody can type. */
const options = (rows) => rows.filter(({ label }) => readable(label, " ") === label).map(({ label }) => h("option", { value: label }));

function changed() {
  changedAt = performance.now();
  showModel(store.info);
  document.dispatchEvent(new CustomEvent("model"));
}

function showModel(info) {
  fill($("name"), info.name);
  document.title = `${readable(info.name)} · hycal`;
  fill($("facts"), info.classes
    ? `${classes(info.classes)} · ${plural(info.images, "image")} · ${plural(Object.keys(info.domains).length, "domain")} · ${info.method} on ${info.encoder}`
    : `nothing learned yet · ${info.method} on ${info.encoder}`);
  $("undo").disabled = !info.undo;
  fill($("undo"), info.undo ? `Undo ${info.undo.replace(": ", " ")}` : "Undo");
  $("undo").title = info.undo ? `Take back: ${readable(info.undo)}` : "There is nothing to take back";
}

/** Carry out a change that a person asked for, say what happened, offer to take it back. */
export const change = (path, body, message) =>
  attempt(async () => {
    const receipt = await post(path, body).catch(async (error) => {
      if (error.status === 409) await refresh(); // somebody else has changed the model: show it before the message
      throw error;
    });
    await applyReceipt(receipt);
    say(receipt.before === receipt.after ? "Nothing changed." : message(receipt), path === "undo" ? {} : undoAction(receipt));
    return receipt;
  });

/** Return the action of a message that undoes the change of a receipt; none if nothing changed. */
export const undoAction = ({ before, after, undoable }) => (before !== after && undoable ? { action: "Undo", onaction: () => undo(after) } : {});

let undone = Promise.resolve(); // the last undo: the next one waits for it

/** Undo the last change of a model, by default the one on the screen; never a change that somebody else made since. */
export function undo(model) {
  undone = undone.then(() => change("undo", { only_if: model ?? store.info.model }, (receipt) => `Taken back: ${receipt.what}`));
}

const HUES = 8;

/** The colour of a domain: the same in every view, by its place among the domains. */
export function colour(domain) {
  const place = Object.keys(store.info?.domains ?? {}).indexOf(domain);
  return place < 0 ? "none" : String(place % HUES);
}
