// What a person means by the name of a class.

import { store } from "./store.js";

/** Return {label, hint}: a known label, the only class of that name, or a new class with its domain; no label if unclear. */
export function meaning(typed) {
  const text = typed.trim();
  const exact = store.classes.filter(({ label }) => label === text);
  const known = exact.length ? exact : store.classes.filter(({ name }) => name === text);
  if (known.length > 1) return { label: null, hint: `Which one: ${known.map(({ label }) => label).join(", ")}?` };
  if (known.length) return { label: known[0].label, hint: `→ ${known[0].label}` };
  if (/^[^/]+\/.+$/.test(text)) return { label: text, hint: `new class ${text}` };
  const examples = [...Object.keys(store.info.domains).filter(Boolean).slice(0, 3), "another"].map((domain) => `${domain}/${text}`);
  return { label: null, hint: `A new class needs its domain: ${examples.join(", ")}` };
}
