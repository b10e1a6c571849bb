// The evidence for a class: what each kind adds to its score, and the nearest learned images.

import { h, labelElement, percent, plural, thumbnail } from "./dom.js";

const QUANTITIES = { score: "Score", evidence: "Evidence, in nats above the average class" };
const MEASURES = { direction: (value) => `cosine ${value.toFixed(2)}`, distance: (value) => `Mahalanobis² ${Math.round(value).toLocaleString("en")}` };

const plainly = (value) => value.toPrecision(3);

export function evidence(candidates) {
  return h("div", { className: "evidence" }, candidates.map(one));
}

function one({ label, evidence: { shots, nearest, quantity, parts } }) {
  return h(
    "div",
    { className: "reason" },
    h("p", {}, labelElement(label), h("span", { className: "quiet" }, ` · ${plural(shots, "image")} learned`)),
    parts.length > 0 && shares(quantity, parts),
    h(
      "ul",
      { className: "nearest", "aria-label": `Nearest images of ${label}` },
      nearest.map(({ image, similarity }) =>
        h("li", {}, thumbnail(image, `similarity ${similarity.toFixed(2)}`), h("small", {}, similarity.toFixed(2))),
      ),
    ),
  );
}

/** A bar with the parts that speak for the class, and all parts in words. */
function shares(quantity, parts) {
  const total = parts.reduce((sum, { share }) => sum + share, 0);
  const favourable = parts.filter(({ share }) => share > 0);
  const whole = Math.max(1, favourable.reduce((sum, { share }) => sum + share, 0));
  const bar = h("div", { className: "shares", role: "img", "aria-label": `${QUANTITIES[quantity]} ${total.toFixed(2)}: ${parts.map(({ name, share }) => `${name} adds ${share.toFixed(2)}`).join(", ")}` },
    favourable.map(({ name }) => h("span", { className: `part ${name}` })));
  favourable.forEach(({ share }, number) => { bar.children[number].style.width = `${(100 * share) / whole}%`; });
  return h(
    "div",
    {},
    bar,
    h("p", { className: "quiet" }, `${QUANTITIES[quantity]} ${total.toFixed(2)}: `, parts.flatMap((part, number) => [number ? ", " : "", h("span", { className: `key part ${part.name}` }), words(part)]), "."),
  );
}

function words({ name, share, measure, weight }) {
  const about = measure === null ? "" : ` (${(MEASURES[name] ?? plainly)(measure)}, counts ${percent(weight)})`;
  return ` ${name} ${share.toFixed(2)}${about}`;
}
