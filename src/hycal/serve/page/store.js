// What every view knows of the model; views hear "model" on the document when it has changed.

import { get, post } from "./api.js";
import { $, classes, h, plural, say, trying } from "./dom.js";

export const store = { info: null, classes: [] };

export async function refresh() {
  const [info, table] = await Promise.all([get("info"), get("classes")]);
  store.info = info;
  store.classes = table.classes;
  showModel(info);
  $("labels").replaceChildren(...table.classes.map(({ label }) => h("option", { value: label })));
  document.dispatchEvent(new CustomEvent("model"));
}

function showModel(info) {
  $("name").textContent = info.name;
  document.title = `${info.name} · hycal`;
  $("facts").textContent = info.classes
    ? `${classes(info.classes)} · ${plural(info.images, "image")} · ${plural(Object.keys(info.domains).length, "domain")}`
    : "nothing learned yet";
  $("undo").disabled = !info.undo;
  $("undo").title = info.undo ? `Take back: ${info.undo}` : "There is nothing to take back";
}

/** Carry out a change that a person asked for, say what happened, offer to take it back. */
export const change = (path, body, message) =>
  trying(async () => {
    const receipt = await post(path, body);
    await refresh();
    const changed = receipt.before !== receipt.after;
    say(changed ? message(receipt) : "Nothing changed.", changed && receipt.undoable && path !== "undo" ? UNDO : {});
    return receipt;
  });

export const undo = () => change("undo", {}, (receipt) => `Taken back: ${receipt.what}`);

const UNDO = { action: "Undo", onaction: undo };

const HUES = 8;

/** The colour of a domain: the same in every view, by its place among the domains. */
export function colour(domain) {
  const place = Object.keys(store.info?.domains ?? {}).indexOf(domain);
  return place < 0 ? "none" : String(place % HUES);
}
