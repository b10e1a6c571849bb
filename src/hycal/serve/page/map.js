// The map of the classes: classes are near each other if the encoder sees similar images.

import { get } from "./api.js";
import { h, labelElement, plural, split, svg, thumbnail } from "./dom.js";
import { colour, store } from "./store.js";

const SIZE = 1000;
const MARGIN = 70;
let parts = null;
let shown = "";

export const map = {
  async show(section) {
    if (!parts) build(section);
    if (shown === store.info?.model) return;
    const found = await get("map");
    shown = found.model;
    draw(found.points);
  },
};

function build(section) {
  parts = {
    about: h("p", { className: "quiet" }, "Every class at the mean of its images, in the plane where the classes differ most. Use the arrow keys to walk."),
    legend: h("div", { className: "legend", role: "group", "aria-label": "Domains" }),
    detail: h("div", { className: "detail", role: "status" }),
    chart: h("div", { className: "chart" }),
  };
  const { about, legend: domains, detail, chart } = parts;
  section.replaceChildren(h("h2", {}, "Map"), about, h("div", { className: "beside" }, domains, detail), chart);
}

function draw(points) {
  parts.detail.replaceChildren();
  if (points.length < 2) {
    parts.legend.replaceChildren();
    parts.chart.replaceChildren(h("p", { className: "empty" }, "A map needs two classes. ", h("a", { href: "#teach" }, "Teach some.")));
    return;
  }
  const [width, height] = [SIZE, SIZE * 0.52];
  const spread = (values, length) => {
    const low = Math.min(...values);
    const range = Math.max(...values) - low || 1;
    return (value) => MARGIN + ((value - low) / range) * (length - 2 * MARGIN);
  };
  const x = spread(points.map((point) => point.x), width);
  const y = spread(points.map((point) => -point.y), height);
  const placed = points.map((point) => ({ ...point, at: [x(point.x), y(-point.y)], radius: (9 + 4 * Math.log2(1 + point.shots)) * Math.min(1, 5 / Math.sqrt(points.length)) ** 0.6 }));
  const nodes = placed.map((point, number) => dot(point, number === 0, placed, () => nodes));
  const texts = captions(placed);
  parts.chart.replaceChildren(
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Map of ${plural(points.length, "class", "classes")}` }, ...nodes, ...texts),
  );
  legend(placed, nodes, texts);
}

function dot(point, first, placed, nodes) {
  const circle = svg("circle", { cx: point.at[0], cy: point.at[1], r: point.radius, tabindex: first ? 0 : -1, role: "img", "aria-label": `${point.label}, ${plural(point.shots, "image")}`, class: "point" });
  circle.dataset.colour = colour(point.domain);
  circle.dataset.domain = point.domain;
  const tell = () => parts.detail.replaceChildren(thumbnail(point.image), labelElement(point.label), h("span", { className: "quiet" }, plural(point.shots, "image")));
  circle.addEventListener("mouseenter", tell);
  circle.addEventListener("focus", tell);
  circle.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = nearest(point, step, placed);
    if (next < 0) return;
    for (const node of nodes()) node.setAttribute("tabindex", -1);
    nodes()[next].setAttribute("tabindex", 0);
    nodes()[next].focus();
  });
  return circle;
}

/** Return the nearest class in a direction; the distance to the side counts double. */
function nearest(point, [right, down], placed) {
  let best = -1;
  let least = Infinity;
  placed.forEach((other, number) => {
    const [dx, dy] = [other.at[0] - point.at[0], other.at[1] - point.at[1]];
    const ahead = right * dx + down * dy;
    const cost = ahead + 2 * Math.abs(right ? dy : dx);
    if (ahead > 0 && cost < least) [best, least] = [number, cost];
  });
  return best;
}

/** Names beside the points, as many as fit without covering one another. */
function captions(placed) {
  const taken = placed.map(({ at: [left, top], radius }) => [left - radius, top - radius, left + radius, top + radius]);
  const texts = [];
  for (const point of [...placed].sort((one, two) => two.shots - one.shots)) {
    const name = split(point.label)[1];
    const [left, top] = point.at;
    const length = 13 * name.length;
    const places = [[left + point.radius + 6, "start", 0], [left - point.radius - 6, "end", -length]];
    const place = places.find(([start, , shift]) => {
      const box = [start + shift, top - 12, start + shift + length, top + 12];
      const free = box[0] > 0 && box[2] < SIZE && !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
      if (free) taken.push(box);
      return free;
    });
    if (!place) continue;
    const text = svg("text", { x: place[0], y: top + 8, "text-anchor": place[1], "aria-hidden": "true" }, name);
    text.dataset.domain = point.domain;
    texts.push(text);
  }
  return texts;
}

function legend(placed, nodes, texts) {
  const domains = [...new Set(placed.map((point) => point.domain))];
  let alone = null;
  parts.legend.replaceChildren(
    ...domains.map((domain) =>
      h("button", { className: "plain", "aria-pressed": "false", onclick: (event) => {
        alone = alone === domain ? null : domain;
        for (const button of parts.legend.children) button.setAttribute("aria-pressed", String(button === event.currentTarget && alone !== null));
        for (const node of [...nodes, ...texts]) node.classList.toggle("faint", alone !== null && node.dataset.domain !== alone);
      } }, h("span", { className: "dot", data: { colour: colour(domain) } }), domain || "no domain"),
    ),
  );
}
