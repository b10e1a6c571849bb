// The images of a pile that a person is asked about, one after the other, with a key for each answer.

import { post } from "./api.js";
import { attempt, fill, h, labelElement, percent, say, split, sureness } from "./dom.js";
import { readable } from "./escaping.js";
import { classFields } from "./labels.js";
import { applyReceipt, colour, refresh, store } from "./store.js";

const IN_HAND = 6; // images whose pictures are fetched ahead

/** Return the number of this person, which the server lends images to: one for each tab. */
function person() {
  const made = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const known = sessionStorage.getItem("hycal-person") ?? made();
  sessionStorage.setItem("hycal-person", known);
  return known;
}

/** Make the place where a person is asked; `told` gets what the server says of the pile, `domain` gives that of new classes. */
export function hand({ told, domain }) {
  const who = person();
  const pictures = new Map(); // by image: its element, fetched before it is shown
  const sent = new Set(); // images whose answer is on its way
  const labelled = []; // receipts of this person, the last at the end
  let images = [];
  let pile = null; // what the server said last of the pile
  let first = null; // an image that was taken back, and is asked about again
  let [renewing, again] = [false, false];
  let steps = Promise.resolve(); // answers are sent one after the other

  const typed = classFields({ name: "Name of what the image shows", onkeydown: (event) => { if (event.key === "Escape") stage.focus(); } });
  const form = h("form", { className: "other", onsubmit: (event) => { event.preventDefault(); answer(typed.label()); } },
    ...typed.fields, h("button", { className: "soft" }, "Learn"), typed.hint);
  const frame = h("div", { className: "asked-picture" });
  const name = h("p", { className: "name quiet" });
  const guess = h("p", { className: "best", "aria-live": "polite" });
  const choices = h("ol", { className: "numbered", "aria-label": "Classes, by their keys" });
  const right = h("button", { className: "main", onclick: () => answer(best()) }, "Right", h("kbd", {}, "Enter"));
  const later = h("button", { className: "soft", onclick: putOff }, "Later", h("kbd", {}, "Space"));
  const back = h("button", { className: "soft", onclick: takeBack, disabled: true }, "Undo", h("kbd", {}, "U"));
  const stage = h("div", { className: "stage", tabIndex: -1, role: "group", "aria-label": "The image that is asked about" },
    frame, h("div", { className: "body" }, name, guess, choices, form, h("p", { className: "buttons" }, right, later, back)));
  const nothing = h("p", { className: "empty", hidden: true });
  const element = h("div", { className: "hand" }, stage, nothing);

  const current = () => images[0];
  const best = () => current()?.candidates[0]?.label;

  /** Ask the server what this person has in hand, with the answers of the newest model. */
  async function renew() {
    again = true;
    if (renewing) return;
    renewing = true;
    try {
      while (again) {
        again = false;
        const found = await post("pile/next", { person: who, most: IN_HAND + (first ? 1 : 0), first });
        const fresh = found.images.filter(({ image }) => !sent.has(image));
        const at = fresh.findIndex(({ image }) => image === (first ?? current()?.image)); // what is on the screen stays there
        images = at > 0 ? [fresh[at], ...fresh.slice(0, at), ...fresh.slice(at + 1)] : fresh;
        first = null;
        pile = found.pile;
        fetchAhead();
        told(pile);
        draw();
        if (found.model !== store.info.model && !sent.size) await refresh(); // somebody else has taught it too
      }
    } finally {
      renewing = false;
    }
  }

  function fetchAhead() {
    const wanted = new Set(images.map(({ image }) => image));
    for (const image of pictures.keys()) if (!wanted.has(image) && !labelled.some((one) => one.image === image)) pictures.delete(image);
    for (const { image, name: file } of images) {
      if (!pictures.has(image)) pictures.set(image, h("img", { className: "asked", alt: file, src: `/api/pile/pictures/${image}` }));
    }
  }

  function draw() {
    const asked = current();
    stage.hidden = !asked;
    nothing.hidden = Boolean(asked);
    if (!asked) {
      const coming = sent.size > 0 || pile.embedded + pile.skipped < pile.total;
      fill(nothing, coming ? "The next images are being made ready…" : "Nothing is left to ask: the others are like those that you labelled, or in other hands. Sort them.");
      return;
    }
    if (frame.firstChild !== pictures.get(asked.image)) fill(frame, pictures.get(asked.image));
    fill(name, asked.name);
    name.title = readable(asked.name);
    const [top] = asked.candidates;
    const doubt = asked.unknown && !asked.learned_as ? "Unlike anything labelled. Perhaps " : "";
    fill(guess, ...(top ? [doubt, h("span", { className: "dot", data: { colour: colour(split(top.label)[0]) } }), labelElement(top.label), h("span", { className: "sure" }, sureness(top, asked.candidates))] : ["What is it? Name the first class."]));
    choices.replaceChildren(...asked.candidates.slice(0, 9).map(choice));
    right.disabled = !top;
    back.disabled = !labelled.length;
    typed.propose(domain());
    if (!top && document.activeElement === document.body) typed.name.focus();
  }

  const choice = ({ label, probability }, place, { length }) =>
    h("li", {}, h("button", { title: label, onclick: () => answer(label) }, h("kbd", {}, String(place + 1)), split(label)[1], h("small", {}, length > 1 && percent(probability))));

  /** Learn the image as a class; the next one is shown at once. */
  function answer(label) {
    const asked = current();
    if (!asked || !label) return;
    next(asked);
    typed.clear(split(label)[0]);
    steps = steps.then(() => attempt(async () => {
      try {
        const receipt = await post("correct?top=1", { image: asked.image, label });
        labelled.push({ image: asked.image, label, after: receipt.after });
        back.disabled = false;
        sent.delete(asked.image);
        await applyReceipt(receipt); // the view is shown again, and asks for more
        if (receipt.before === receipt.after) await renew();
      } catch (error) {
        sent.delete(asked.image);
        images.unshift(asked);
        draw();
        throw error;
      }
    }));
  }

  function next(asked) {
    sent.add(asked.image);
    images = images.filter(({ image }) => image !== asked.image);
    draw();
    stage.focus({ preventScroll: true });
  }

  function putOff() {
    const asked = current();
    if (!asked) return;
    next(asked);
    steps = steps.then(() => attempt(async () => {
      await post("pile/later", { person: who, image: asked.image });
      sent.delete(asked.image);
      await renew();
    }));
  }

  /** Take the last answer of this person back: by undo, or if others have taught the model since, by forgetting the image. */
  function takeBack() {
    stage.focus({ preventScroll: true });
    steps = steps.then(() => attempt(async () => {
      const last = labelled.pop();
      if (!last) return;
      const receipt = await post("undo", { only_if: last.after }).catch((error) => {
        if (error.status !== 409) throw error;
        return post("forget", { image: last.image });
      });
      first = last.image;
      say(`Taken back: ${last.label}`);
      await applyReceipt(receipt);
    }));
  }

  addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (!element.offsetParent || event.repeat || event.ctrlKey || event.altKey || event.metaKey || target.closest?.("input, select, textarea, dialog")) return;
    const pressed = target.closest?.("button, a, summary"); // Enter and Space press it
    const work = { Enter: !pressed && (() => answer(best())), " ": !pressed && putOff, u: takeBack, U: takeBack, n: () => typed.name.focus() }[key];
    const chosen = /^[1-9]$/.test(key) && current()?.candidates[Number(key) - 1];
    if (!work && !chosen) return;
    event.preventDefault();
    if (chosen) answer(chosen.label);
    else work();
  });

  return { element, renew, isEmpty: () => !images.length };
}
