// The evidence for a class: the two shares of its score, and the nearest learned images.

import { h, labelElement, percent, plural, thumbnail } from "./dom.js";

export function evidence(candidates) {
  return h("div", { className: "evidence" }, candidates.map(one));
}

function one({ label, evidence: { shots, nearest, parts } }) {
  return h(
    "div",
    { className: "reason" },
    h("p", {}, labelElement(label), h("span", { className: "quiet" }, ` · ${plural(shots, "image")} learned`)),
    parts && shares(parts),
    h(
      "ul",
      { className: "nearest", "aria-label": `Nearest images of ${label}` },
      nearest.map(({ image, similarity }) =>
        h("li", {}, thumbnail(image, `similarity ${similarity.toFixed(2)}`), h("small", {}, similarity.toFixed(2))),
      ),
    ),
  );
}

function shares({ weight, cosine, distance, cosine_share: direction, distance_share: closeness }) {
  const bar = h("div", { className: "shares", role: "img", "aria-label": `Score ${(direction + closeness).toFixed(2)}: direction adds ${direction.toFixed(2)}, distance ${closeness.toFixed(2)}` },
    h("span", { className: "direction" }), h("span", { className: "closeness" }));
  bar.children[0].style.width = `${100 * direction}%`;
  bar.children[1].style.width = `${100 * closeness}%`;
  return h(
    "div",
    {},
    bar,
    h(
      "p",
      { className: "quiet" },
      h("span", { className: "key direction" }), ` direction ${direction.toFixed(2)} (cosine ${cosine.toFixed(2)}) + `,
      h("span", { className: "key closeness" }), ` distance ${closeness.toFixed(2)} (Mahalanobis² ${Math.round(distance).toLocaleString("en")}). Distance counts ${percent(weight)}.`,
    ),
  );
}
