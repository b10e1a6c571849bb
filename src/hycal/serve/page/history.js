// The history: accepted changes, newest first.

import { get } from "./api.js";
import { h } from "./dom.js";

export const history = {
  async show(section) {
    const { entries } = await get("history");
    const last = entries.find((entry) => entry.undoable);
    section.replaceChildren(
      h("h2", {}, "History"),
      h("p", { className: "quiet" }, "Every change has the hash of the model before and after. Equal hashes are equal models, to the byte."),
      entries.length
        ? h("ol", { className: "events" }, entries.map((entry) => row(entry, entry === last)))
        : h("p", { className: "empty" }, "Nothing was changed yet."),
    );
  },
};

function row(entry, next) {
  return h(
    "li",
    {},
    h("span", { className: "action", data: { action: entry.action } }, entry.action),
    h("span", { className: "what" }, entry.what, next && h("span", { className: "quiet" }, " · Undo takes this back")),
    h("time", { dateTime: entry.when, title: entry.when }, new Date(entry.when).toLocaleString().replace(/\p{Zs}/gu, " ")),
    h("code", { title: `before ${entry.before}\nafter ${entry.after}` }, `${entry.before.slice(0, 8)} → ${entry.after.slice(0, 8)}`),
  );
}
