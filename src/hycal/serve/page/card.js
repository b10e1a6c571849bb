// The card of one answer: the image, its candidates, the evidence, and the buttons that correct it.

import { ApiError, post, upload } from "./api.js";
import { attempt, h, labelElement, nextFrame, percent, say, split, sureness } from "./dom.js";
import { evidence } from "./evidence.js";
import { classFields } from "./labels.js";
import { applyReceipt, colour, store, undoAction } from "./store.js";

export const QUESTION = "top=5";

/** Make the card of {file, path, answer, model}. */
export function card(item) {
  let outdated = false; // the model has changed, and the server does not have the image any more
  const body = h("div", { className: "body" });
  const url = URL.createObjectURL(item.file);
  const picture = h("img", { className: "picture", src: url, alt: item.path, onerror: () => picture.classList.add("broken") });
  const element = h("li", { className: "card", tabIndex: -1 }, picture, body);
  element.addEventListener("keydown", (event) => {
    const choice = item.answer.candidates[Number(event.key) - 1];
    if (choice && !store.info.read_only && !event.repeat && !event.target.closest("input") && !event.ctrlKey && !event.altKey && !event.metaKey) correct(choice.label, event);
  });

  /** Show a new answer, or say that the old one is outdated. */
  function update(answer) {
    const lost = Boolean(answer.problem);
    if (lost === outdated && (lost || JSON.stringify(answer) === JSON.stringify(item.answer))) return;
    const changed = !lost && best(answer) !== best(item.answer);
    outdated = lost;
    if (!lost) item.answer = answer;
    redraw();
    if (changed) flash(element);
  }

  /** Draw again, but keep an open form, open details and the focus. */
  function redraw() {
    if (body.querySelector("form")) return; // the card is drawn when the form is closed
    const reading = body.querySelector("details")?.open;
    const place = [...body.querySelectorAll("button, summary")].indexOf(document.activeElement);
    draw();
    if (reading) body.querySelector("details").open = true;
    if (place >= 0) (body.querySelectorAll("button, summary")[place] ?? element).focus({ preventScroll: true });
  }

  function draw(note) {
    const { answer } = item;
    body.classList.toggle("doubtful", isUnlike(answer));
    body.replaceChildren(
      h("p", { className: "name quiet", title: item.path }, item.path),
      ...(answer.problem ? [h("p", { className: "problem" }, `Cannot be used: ${answer.problem}`)] : contentOf(answer).filter(Boolean)),
    );
    if (note) body.append(note);
  }

  function contentOf(answer) {
    const [top, ...others] = answer.candidates;
    if (!top) return [h("p", { className: "quiet" }, "no classes")];
    return [
      isUnlike(answer) && h("p", { className: "best unlike" }, "Unlike anything learned"),
      isUnlike(answer) && h("p", { className: "quiet" }, "Perhaps none of its classes. The nearest:"),
      h("p", { className: "best" }, h("span", { className: "dot", data: { colour: colour(split(top.label)[0]) } }), labelElement(top.label), h("span", { className: "sure" }, sureness(top, answer.candidates))),
      others.length > 0 && h("meter", { min: 0, max: 1, value: top.probability, "aria-label": `Confidence ${percent(top.probability)}` }),
      outdated && h("p", { className: "unlike" }, "This answer is from before the last change. ", h("button", { className: "plain", onclick: () => attempt(askAgain) }, "Ask again")),
      answer.learned_as && h("p", { className: "learned" }, `✓ learned as ${answer.learned_as}`),
      h(
        "div",
        { className: "choices", role: "group", "aria-label": "What is it really?" },
        !answer.learned_as && h("button", { className: "right", title: "Learn it as this class (key 1)", onclick: (event) => correct(top.label, event) }, "✓ Right"),
        others.map((other, place) =>
          h("button", { title: `${other.label} (key ${place + 2})`, onclick: (event) => correct(other.label, event) }, split(other.label)[1], h("small", {}, percent(other.probability))),
        ),
        h("button", { className: "other", onclick: (event) => openOther(event.target) }, "Another…"),
      ),
      h("details", { ontoggle: (event) => event.target.open && attempt(() => why(event.target)) }, h("summary", {}, "Why?")),
    ];
  }

  async function why(details) {
    if (details.children.length > 1) return;
    const { candidates } = (await askAbout("top=2&why=true")).answers[0];
    details.append(evidence(candidates));
  }

  async function askAgain() {
    const { model, answers } = await askAbout(QUESTION);
    item.model = model;
    update({ ...answers[0], name: item.answer.name });
  }

  /** Ask again about the image; one of several read-only servers may not have it, so it is sent again. */
  const askAbout = (question) =>
    store.info.read_only ? upload(`classify?${question}`, [item]) : withImage(async (image) => {
      const found = await post(`answers?${question}`, { images: [image] });
      if (found.answers[0].problem) throw new ApiError(404, found.answers[0].problem);
      return found;
    });

  function openOther(button) {
    const typed = classFields({
      name: "Class that the image shows",
      onkeydown: (event) => { if (event.key === "Escape") { draw(); body.querySelector("button.other").focus(); } },
    });
    const form = h("form", { className: "other", onsubmit: (event) => { event.preventDefault(); correct(typed.label(), event); } },
      ...typed.fields, h("button", { className: "main" }, "Learn"), typed.hint);
    button.replaceWith(form);
    typed.name.focus();
  }

  /** Learn the image as a class. The time that the card shows starts at the event, so it includes all waiting. */
  const correct = (label, { timeStamp: began }) =>
    attempt(async () => {
      const receipt = await withImage((image) => post("correct?top=5", { image, label }));
      item.model = receipt.after;
      item.answer = { ...receipt.answer, name: item.answer.name };
      outdated = false;
      draw();
      await nextFrame();
      const spent = Math.round(performance.now() - began);
      const changed = receipt.before !== receipt.after;
      draw(changed && noteOf(receipt, spent));
      element.dataset.ms = spent;
      flash(element);
      if (document.activeElement === document.body) element.focus({ preventScroll: true }); // the focus is nowhere else
      say(changed ? `Learned as ${label}. The model answered anew after ${spent} ms.` : `It was learned as ${label} already.`, undoAction(receipt));
      await applyReceipt(receipt);
    });

  const noteOf = (receipt, spent) =>
    h("p", { className: "learned" }, `Updated in ${spent} ms: ${receipt.milliseconds.changing.toFixed(0)} to learn and keep, ${receipt.milliseconds.answering.toFixed(0)} to answer anew.`);

  /** Do something with the image on the server; send it again if the server was restarted. */
  async function withImage(work) {
    try {
      return await work(item.answer.image);
    } catch (error) {
      if (error.status !== 404) throw error;
      const { images } = await upload("images", [item]);
      return work(images[0].image);
    }
  }

  draw();
  return { element, update, discard: () => URL.revokeObjectURL(url) };
}

const isUnlike = (answer) => Boolean(answer.unknown && !answer.learned_as);

const best = (answer) => answer.candidates[0]?.label ?? "";

function flash(element) {
  element.classList.remove("flash");
  requestAnimationFrame(() => element.classList.add("flash"));
}
