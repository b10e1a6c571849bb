// What a person means by the name of a class, and the fields in which it is typed.

import { fill, h } from "./dom.js";
import { readable } from "./escaping.js";
import { store } from "./store.js";

/** Return {label, hint, asks}: a known label, the only class of that name, or a new class in its domain; no label if unclear. */
export function meaning(typed, domain = "") {
  const text = typed.trim();
  const exact = store.classes.filter(({ label }) => label === text);
  const known = exact.length ? exact : store.classes.filter(({ name }) => name === text);
  if (known.length > 1) return { label: null, hint: `Which one: ${known.map(({ label }) => label).join(", ")}?` };
  if (known.length) return { label: known[0].label, hint: `→ ${known[0].label}` };
  if (/^[^/]+\/.+$/.test(text)) return { label: text, hint: `new class ${text}` };
  const label = domain.trim() && text && !text.includes("/") && !domain.includes("/") ? `${domain.trim()}/${text}` : null;
  return { label, hint: label ? `new class ${label}` : `${text} is a new class. Which domain is it of?`, asks: Boolean(text) };
}

/**
 * Return the fields of a class with a hint, and `label()`, null while it is unclear. The domain of a new class is asked for;
 * `clear(domain)` empties the fields, and proposes a domain for the next one; `propose(domain)` does where nothing is typed.
 */
export function classFields({ name: what, changed = () => {}, onkeydown }) {
  const hint = h("span", { className: "quiet", role: "status" });
  const common = { autocomplete: "off", oninput: check, onkeydown };
  const name = h("input", { ...common, list: "labels", placeholder: "class, known or new", "aria-label": what, required: true });
  const domain = h("input", { ...common, list: "domains", placeholder: "its domain", "aria-label": "Domain of the new class", hidden: true });
  const meant = () => meaning(name.value, domain.value);
  function check() {
    const { label, hint: text, asks } = meant();
    domain.hidden = !asks;
    fill(hint, name.value.trim() ? text : "");
    name.setCustomValidity(label === null && !asks ? readable(text) : "");
    domain.setCustomValidity(label === null && asks ? readable(text) : "");
    changed();
  }
  function clear(proposed = "") {
    name.value = "";
    domain.value = proposed;
    check();
    domain.hidden = true;
  }
  function propose(proposed) {
    if (proposed && !name.value) domain.value = proposed;
  }
  return { name, fields: [name, domain], hint, label: () => meant().label, clear, propose };
}
