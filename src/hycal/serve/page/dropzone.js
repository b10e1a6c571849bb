// Where files are dropped, with buttons that choose images or a whole folder instead.

import { h } from "./dom.js";
import { chosenFiles } from "./files.js";

/** Make a drop zone; `first` is the main button, "images" or "folder". */
export function dropZone({ title, hint, take, first }) {
  const input = (properties) => {
    const element = h("input", { type: "file", multiple: true, className: "hidden", tabIndex: -1, "aria-hidden": "true", ...properties });
    element.addEventListener("change", () => {
      const items = chosenFiles(element);
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
