// The frame of the page: the views, drops and pastes, undo and redo.

import { ask } from "./ask.js";
import { camera } from "./camera.js";
import { table } from "./classes.js";
import { $, attempt, say } from "./dom.js";
import { droppedFiles } from "./files.js";
import { history } from "./history.js";
import { map } from "./map.js";
import { model } from "./model.js";
import { pile } from "./pile.js";
import { redo, refresh, store, undo } from "./store.js";
import { teach } from "./teach.js";
import { test } from "./test.js";

const VIEWS = { ask, teach, pile, test, camera, classes: table, map, history, model };

function current() {
  const name = location.hash.slice(1);
  if (name in VIEWS) return name;
  return store.info?.classes ? "ask" : "teach";
}

function show() {
  const name = current();
  for (const view of Object.keys(VIEWS)) {
    if (view !== name && !$(view).hidden) VIEWS[view].leave?.();
    $(view).hidden = view !== name;
  }
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  attempt(() => VIEWS[name].show($(name)));
}

function target() {
  return VIEWS[current()].take ? current() : "ask";
}

let depth = 0;

function overlay(shown) {
  $("overlay").className = shown ? "shown" : "";
  $("overlay").firstElementChild.textContent = target() === "pile" ? "Drop on the pile" : `Drop to ${target()}`;
}

const hasFiles = (event) => event.dataTransfer?.types.includes("Files"); // a group of the pile is dragged too

addEventListener("dragenter", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  depth += 1;
  overlay(true);
});
addEventListener("dragleave", (event) => {
  if (!hasFiles(event)) return;
  depth -= 1;
  if (depth <= 0) overlay(false);
});
addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  depth = 0;
  overlay(false);
  attempt(async () => take(await droppedFiles(event.dataTransfer)));
});
addEventListener("paste", (event) => {
  const files = [...(event.clipboardData?.files ?? [])];
  if (files.length) take(files.map((file) => ({ file, path: file.name })));
});

function take(items) {
  if (!items.length) {
    say("There were no files in that.");
    return;
  }
  const name = target();
  if (current() !== name) location.hash = name;
  VIEWS[name].take(items);
}

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  const key = event.key.toLowerCase();
  if (!typing && (key === "z" || key === "y") && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    const again = key === "y" || event.shiftKey;
    if (!event.repeat && (again ? store.info?.redo : store.info?.undo)) (again ? redo : undo)();
  }
});
addEventListener("hashchange", show);
$("undo").addEventListener("click", () => undo());
$("redo").addEventListener("click", () => redo());
document.addEventListener("model", show);

await attempt(refresh);
if (!location.hash) location.replace(`#${current()}`); // so that the first lesson stays on the screen after it is learned
show();
document.body.dataset.ready = "yes";
