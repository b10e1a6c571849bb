// The two ways to choose files, for those who do not drop: images, or a whole folder.

import { h } from "./dom.js";
import { chosen } from "./files.js";

/** Where files are dropped or chosen; `first` is what most people want here, "images" or "folder". */
export function zone({ title, hint, take, first }) {
  const input = (properties) => {
    const element = h("input", { type: "file", multiple: true, className: "hidden", tabIndex: -1, "aria-hidden": "true", ...properties });
    element.addEventListener("change", () => {
      const items = chosen(element);
      element.value = "";
      if (items.length) take(items);
    });
    return element;
  };
  const images = input({ accept: "image/*" });
  const folder = input({ webkitdirectory: true });
  return h(
    "div",
    { className: "zone" },
    h("p", { className: "title" }, title),
    hint && h("p", { className: "quiet" }, hint),
    h(
      "p",
      { className: "buttons" },
      h("button", { className: first === "images" ? "main" : "soft", onclick: () => images.click() }, "Choose images"),
      h("button", { className: first === "folder" ? "main" : "soft", onclick: () => folder.click() }, "Choose a folder"),
    ),
    images,
    folder,
  );
}
