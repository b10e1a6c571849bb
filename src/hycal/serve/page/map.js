// The map of the classes: classes are near each other if the encoder sees similar images. It can be zoomed and moved.

import { get } from "./api.js";
import { h, labelElement, plural, split, svg, thumbnail } from "./dom.js";
import { readable } from "./escaping.js";
import { colour, store } from "./store.js";

const WIDTH = 1000;
const MARGIN = 70;
const MOST_ZOOM = 40;
const STEP = 1.5; // of the zoom buttons and keys
const MANY = 150; // visible classes, from which on names have fewer places to try
let parts = null;
let shown = "";
let points = []; // {label, domain, shots, image, x, y}: x and y in [0, 1]
let alone = null; // the domain that is shown alone
let view = { zoom: 1, x: 0.5, y: 0.5 }; // the centre of the map, in [0, 1]

export const map = {
  async show(section) {
    if (!parts) build(section);
    if (shown === store.info?.model) return;
    const found = await get("map");
    shown = found.model;
    points = scaled(found.points);
    alone = null;
    move({ zoom: 1, x: 0.5, y: 0.5 });
    legend();
  },
};

function build(section) {
  const zoomBy = (factor) => () => move({ ...view, zoom: view.zoom * factor });
  parts = {
    legend: h("div", { className: "legend", role: "group", "aria-label": "Domains" }),
    detail: h("div", { className: "detail", role: "status" }),
    chart: h("div", { className: "chart" }),
    buttons: h("p", { className: "zoom" },
      h("button", { className: "soft", "aria-label": "Zoom in", onclick: zoomBy(STEP) }, "+"),
      h("button", { className: "soft", "aria-label": "Zoom out", onclick: zoomBy(1 / STEP) }, "−"),
      h("button", { className: "soft", onclick: () => move({ zoom: 1, x: 0.5, y: 0.5 }) }, "Whole map")),
  };
  const about = h("p", { className: "quiet" }, "Every class at the mean of its images, in the plane where the classes differ most. Zoom by wheel, pinch or the keys + and −, move by dragging; the arrow keys walk from class to class.");
  section.replaceChildren(h("h2", {}, "Map"), about, h("div", { className: "beside" }, parts.legend, parts.buttons), parts.chart, parts.detail);
  watchGestures(parts.chart);
  addEventListener("resize", () => points.length > 1 && !section.hidden && draw());
}

/** Return the points with both coordinates in [0, 1]. */
function scaled(found) {
  const range = (values) => {
    const low = Math.min(...values);
    const length = Math.max(...values) - low || 1;
    return (value) => (value - low) / length;
  };
  const x = range(found.map((point) => point.x));
  const y = range(found.map((point) => -point.y));
  return found.map((point) => ({ ...point, x: x(point.x), y: y(-point.y) }));
}

function move({ zoom, x, y }) {
  const within = Math.min(MOST_ZOOM, Math.max(1, zoom));
  const edge = 0.5 / within;
  const inside = (value) => Math.min(1 - edge, Math.max(edge, value));
  view = { zoom: within, x: inside(x), y: inside(y) };
  draw();
}

const isNarrow = () => parts.chart.clientWidth > 0 && parts.chart.clientWidth < 560;

/** Return the size of the drawing, and that of its letters: a phone gets a taller map with larger letters. */
const size = () => (isNarrow() ? { height: WIDTH * 1.25, letters: 38 } : { height: WIDTH * 0.56, letters: 22 });

function draw() {
  parts.detail.replaceChildren();
  parts.buttons.hidden = points.length < 2;
  if (points.length < 2) {
    parts.chart.replaceChildren(h("p", { className: "empty" }, "A map needs two classes. ", h("a", { href: "#teach" }, "Teach some.")));
    return;
  }
  const { height, letters } = size();
  const placed = visible(height);
  const nodes = placed.map((point, number) => dot(point, number === 0, placed, () => nodes));
  parts.chart.replaceChildren(
    svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": `Map of ${plural(placed.length, "class", "classes")}` }, ...captions(placed, height, letters), ...nodes),
  );
  for (const node of parts.chart.querySelectorAll("[data-domain]")) node.classList.toggle("faint", alone !== null && node.dataset.domain !== alone);
}

/** Return the points within the view, with their place in the drawing. */
function visible(height) {
  const at = (value, centre, length) => length / 2 + (value - centre) * view.zoom * (length - 2 * MARGIN);
  return points
    .map((point) => ({
      ...point,
      at: [at(point.x, view.x, WIDTH), at(point.y, view.y, height)],
      radius: (9 + 4 * Math.log2(1 + point.shots)) * Math.min(1, (5 * view.zoom) / Math.sqrt(points.length)) ** 0.6,
    }))
    .filter(({ at: [left, top] }) => left > 0 && left < WIDTH && top > 0 && top < height);
}

function dot(point, first, placed, nodes) {
  const circle = svg("circle", { cx: point.at[0], cy: point.at[1], r: point.radius, tabindex: first ? 0 : -1, role: "img", "aria-label": `${point.label}, ${plural(point.shots, "image")}`, class: "point" });
  circle.dataset.colour = colour(point.domain);
  circle.dataset.domain = point.domain;
  const tell = () => parts.detail.replaceChildren(...(point.image ? [thumbnail(point.image)] : []), labelElement(point.label), h("span", { className: "quiet" }, plural(point.shots, "image")));
  for (const event of ["mouseenter", "focus", "click"]) circle.addEventListener(event, tell);
  circle.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "+" || event.key === "-") move({ zoom: view.zoom * (event.key === "+" ? STEP : 1 / STEP), x: point.x, y: point.y });
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

/** Names near the points without covering one another, each with a line to its point where it is farther away. */
function captions(placed, height, letters) {
  const taken = placed.map(({ at: [left, top], radius }) => [left - radius, top - radius, left + radius, top + radius]);
  const isFree = (box) => box[0] > 0 && box[2] < WIDTH && box[1] > 0 && box[3] < height && !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
  const drawn = [];
  for (const point of [...placed].sort((one, two) => two.shots - one.shots)) {
    const name = readable(split(point.label)[1]);
    const length = 0.58 * letters * name.length;
    const box = places(point, length, letters, placed.length > MANY ? 1 : 9).find(isFree);
    if (!box) continue;
    taken.push(box);
    const line = svg("line", { x1: point.at[0], y1: point.at[1], x2: (box[0] + box[2]) / 2, y2: (box[1] + box[3]) / 2 });
    const text = svg("text", { x: box[0], y: box[3] - 0.28 * letters, "font-size": letters, "aria-hidden": "true" }, name);
    for (const node of [line, text]) node.dataset.domain = point.domain;
    drawn.push({ line, text });
  }
  return [...drawn.map(({ line }) => line), ...drawn.map(({ text }) => text)];
}

/** Boxes where the name of a point may stand, the best first: beside it, above and below it, then on wider rings. */
function places({ at: [left, top], radius }, length, letters, rings) {
  const found = [];
  for (let ring = 0; ring < rings; ring += 1) {
    const away = radius + 6 + ring * letters;
    for (const [right, down] of [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]]) {
      const x = left + right * away - (length * (1 - right)) / 2;
      const y = top + down * (away + letters / 2) - letters / 2;
      found.push([x, y, x + length, y + letters]);
    }
  }
  return found;
}

/** Zoom by wheel and by two fingers, move by one. */
function watchGestures(chart) {
  const fingers = new Map();
  const spread = () => {
    const [one, two] = [...fingers.values()];
    return Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY);
  };
  chart.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top, width, height } = chart.getBoundingClientRect();
    const zoom = Math.min(MOST_ZOOM, Math.max(1, view.zoom * 1.0015 ** -event.deltaY));
    const shift = 1 / view.zoom - 1 / zoom; // what is below the pointer stays there
    move({ zoom, x: view.x + ((event.clientX - left) / width - 0.5) * shift, y: view.y + ((event.clientY - top) / height - 0.5) * shift });
  }, { passive: false });
  chart.addEventListener("pointerdown", (event) => fingers.set(event.pointerId, event));
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) chart.addEventListener(end, (event) => fingers.delete(event.pointerId));
  chart.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const apart = fingers.size === 2 ? spread() : 0;
    fingers.set(event.pointerId, event);
    const { width, height } = chart.getBoundingClientRect();
    const [dx, dy] = [(event.clientX - before.clientX) / width, (event.clientY - before.clientY) / height];
    if (fingers.size === 2) move({ ...view, zoom: (view.zoom * spread()) / (apart || 1) });
    else if (fingers.size === 1 && (dx || dy)) move({ ...view, x: view.x - dx / view.zoom, y: view.y - dy / view.zoom });
  });
}

function legend() {
  const domains = [...new Set(points.map((point) => point.domain))];
  parts.legend.replaceChildren(
    ...domains.map((domain) =>
      h("button", { className: "plain", "aria-pressed": "false", onclick: (event) => {
        alone = alone === domain ? null : domain;
        for (const button of parts.legend.children) button.setAttribute("aria-pressed", String(button === event.currentTarget && alone !== null));
        draw();
      } }, h("span", { className: "dot", data: { colour: colour(domain) } }), domain || "no domain"),
    ),
  );
}
