// What every view knows of the model. The document gets the event "model" when it has changed.

import { get, post } from "./api.js";
import { confirmed } from "./dialog.js";
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
  $("labels").replaceChildren(...typeable(table.classes.map(({ label }) => label)));
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
  $("labels").append(...typeable(fresh.map(({ label }) => label)));
  changed();
}

/** Make the options of an input, without names that cannot be typed. */
const typeable = (names) => names.filter((name) => readable(name, " ") === name).map((name) => h("option", { value: name }));

function changed() {
  changedAt = performance.now();
  $("domains").replaceChildren(...typeable(Object.keys(store.info.domains).filter(Boolean)));
  showModel(store.info);
  document.dispatchEvent(new CustomEvent("model"));
}

function showModel(info) {
  fill($("name"), info.name);
  document.title = `${readable(info.name)} · hycal`;
  fill(
    $("facts"),
    info.read_only && "read only · ",
    info.classes ? `${classes(info.classes)} · ${plural(info.images, "image")} · ${plural(Object.keys(info.domains).length, "domain")} · ` : "nothing learned yet · ",
    h("a", { href: "#model", title: "Show and change method and encoder" }, `${info.method} on ${info.encoder}`),
  );
  document.body.classList.toggle("read-only", info.read_only);
  $("undo").disabled = !info.undo;
  fill($("undo"), info.undo ? `Undo ${info.undo}` : "Undo");
  $("undo").title = info.undo ? `Take back the ${readable(info.undo)}` : "There is nothing to take back";
  $("redo").hidden = !info.redo;
  fill($("redo"), `Redo ${info.redo}`);
  $("redo").title = `Make the ${readable(info.redo)} again`;
}

/** Carry out a change that a person asked for, say what happened, offer to take it back. */
export const change = (path, body, message) =>
  attempt(async () => {
    const receipt = await post(path, body).catch(async (error) => {
      if (error.status === 409) await refresh(); // somebody else has changed the model: show it before the message
      throw error;
    });
    await applyReceipt(receipt);
    say(receipt.before === receipt.after ? "Nothing changed." : message(receipt), path === "undo" ? { action: "Redo", onaction: redo } : undoAction(receipt));
    return receipt;
  });

/** Return the action of a message that undoes the change of a receipt; none if nothing changed. */
export const undoAction = ({ before, after, undoable }) => (before !== after && undoable ? { action: "Undo", onaction: () => undo(after) } : {});

let stepped = Promise.resolve(); // the last undo or redo: the next one waits for it

/** Undo the last change of a model, by default the one on the screen; never a change that somebody else made since. */
export function undo(model) {
  stepped = stepped.then(async () => {
    const { info } = store;
    const empties = info.undo_empties && (model ?? info.model) === info.model;
    if (empties && !(await confirmed("Nothing will be left", `The model will have no class after you take back the ${info.undo}. Redo makes it again, until the next change.`, "Undo"))) return;
    await change("undo", { only_if: model ?? info.model }, (receipt) => `Taken back: ${receipt.what}`);
  });
}

/** Make the change again that the last undo took back. */
export function redo() {
  stepped = stepped.then(() => change("redo", { only_if: store.info.model }, (receipt) => `Made again: ${receipt.what}`));
}

const HUES = 8;

/** The colour of a domain: the same in every view, by its place among the domains. */
export function colour(domain) {
  const place = Object.keys(store.info?.domains ?? {}).indexOf(domain);
  return place < 0 ? "none" : String(place % HUES);
}
