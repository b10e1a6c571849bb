// Groups of a pile: images that are alike and fit no class. One drag onto a class, or a name, teaches a whole group.

import { get, post } from "./api.js";
import { attempt, classes, fill, h, plural, say, split, thumbnail } from "./dom.js";
import { classFields } from "./labels.js";
import { applyReceipt, colour, store, undoAction } from "./store.js";

const SHOWN = 8; // images of a group before all are shown
const MOST_TARGETS = 30; // classes that a group can be dragged onto; others are typed

/** Make the list of groups; `changed` is called when one was taught, `domain` gives that of new classes. */
export function groups({ changed, domain }) {
  let dragged = null;
  const list = h("ul", { className: "groups", "aria-label": "Groups" });
  const targets = h("ul", { className: "targets", "aria-label": "Classes to drag a group onto", hidden: true });
  const note = h("p", { className: "quiet", role: "status" });
  const look = h("button", { className: "soft", onclick: () => attempt(show) }, "Look for groups");
  const element = h("section", { className: "pile-part", "aria-label": "Groups" }, h("h3", {}, "Groups"),
    h("p", { className: "quiet" }, "Images that are alike and fit no class yet. Leave out what does not belong, then drag a group onto a class, or name it."),
    h("p", { className: "buttons" }, look), note, targets, list);

  async function show() {
    fill(note, "Looking…");
    const { groups: found } = await get("pile/groups");
    fill(note, found.length ? plural(found.length, "group") : "No groups: the images that are ready fit a class, or are like too few others.");
    list.replaceChildren(...found.map(row));
    drawTargets(found.length);
  }

  function drawTargets(count) {
    targets.hidden = !count || !store.classes.length;
    targets.replaceChildren(...store.classes.slice(0, MOST_TARGETS).map(({ label }) =>
      droppable(h("li", { data: { label }, title: label }, h("span", { className: "dot", data: { colour: colour(split(label)[0]) } }), split(label)[1]), (group) => teach(group, label))));
  }

  /** Let a group be dropped on an element. */
  function droppable(target, drop) {
    const over = (event, inside) => {
      if (!dragged) return;
      event.preventDefault();
      target.classList.toggle("over", inside);
    };
    for (const [kind, inside] of [["dragenter", true], ["dragover", true], ["dragleave", false]]) target.addEventListener(kind, (event) => over(event, inside));
    target.addEventListener("drop", (event) => {
      over(event, false);
      if (dragged) drop(dragged);
    });
    return target;
  }

  function row({ images, similarity }) {
    const group = { images, without: new Set(), element: null };
    const pictures = h("div", { className: "members" });
    const all = h("button", { type: "button", className: "plain", onclick: () => drawPictures(images.length) }, `All ${images.length}`);
    const drawPictures = (count) => {
      pictures.replaceChildren(...images.slice(0, count).map((image) => member(group, image)));
      if (count < images.length) pictures.append(all);
    };
    drawPictures(SHOWN);
    const typed = classFields({ name: "Name of the group" });
    const form = droppable(h("form", { className: "other", onsubmit: (event) => { event.preventDefault(); if (typed.label()) teach(group, typed.label()); } },
      ...typed.fields, h("button", { className: "main" }, "Name the group"), typed.hint), () => typed.name.focus());
    form.addEventListener("focusin", () => typed.propose(domain()));
    group.element = h("li", { draggable: true }, h("p", { className: "quiet" }, `${plural(images.length, "image")}, alike ${similarity.toFixed(2)}`), pictures, form);
    group.element.addEventListener("dragstart", (event) => {
      dragged = group;
      event.dataTransfer.setData("text/plain", `${images.length} images`);
      event.dataTransfer.effectAllowed = "copy";
      element.classList.add("dragging");
    });
    group.element.addEventListener("dragend", () => {
      dragged = null;
      element.classList.remove("dragging");
    });
    return group.element;
  }

  /** One image of a group, which can be left out. */
  function member(group, image) {
    const button = h("button", { type: "button", "aria-pressed": String(group.without.has(image)), "aria-label": "Leave this image out", title: "Leave this image out", onclick: () => {
      if (!group.without.delete(image)) group.without.add(image);
      button.setAttribute("aria-pressed", String(group.without.has(image)));
    } }, thumbnail(image));
    return button;
  }

  const teach = ({ images, without, element: shown }, label) =>
    attempt(async () => {
      const kept = images.filter((image) => !without.has(image));
      if (!kept.length) throw new Error("Every image of the group is left out, so nothing was learned.");
      const receipt = await post("learn", { labels: Object.fromEntries(kept.map((image) => [image, label])) });
      shown.remove();
      await applyReceipt(receipt);
      say(`Learned ${plural(kept.length, "image")} as ${label}.`, undoAction(receipt));
      drawTargets(list.children.length);
      fill(note, `${plural(list.children.length, "group")} left; ${classes(store.info.classes)} in all. Look again to see the groups of the new model.`);
      await changed();
    });

  return { element };
}
