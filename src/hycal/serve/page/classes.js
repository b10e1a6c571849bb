// The table of classes: images, leave-one-out accuracy, and the buttons that rename and forget.

import { get } from "./api.js";
import { askFor, confirmed } from "./dialog.js";
import { attempt, classes, h, percent, plural, split, thumbnail } from "./dom.js";
import { change, colour, store } from "./store.js";

let parts = null;
let accuracy = { model: "", classes: new Map() };
const tables = new Map(); // by domain
const rows = new Map(); // by label: {one, estimate, element}; the element is made again only if `one` or `estimate` changed

/** Adds the pictures of a row when it comes near the screen: thousands of pictures cost time even if they load lazily. */
const pictureLoader = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    pictureLoader.unobserve(target);
    target.querySelector(".strip").append(...rows.get(target.dataset.label).one.images.map((image) => thumbnail(image)));
  }
}, { rootMargin: "600px" });

export const table = {
  show(section) {
    if (!parts) build(section);
    draw();
    attempt(estimate);
  },
};

function build(section) {
  parts = {
    overall: h("p", { className: "quiet", role: "status" }),
    hints: h("p", { className: "quiet" }),
    suspects: h("div", { className: "suspects" }),
    filter: h("input", { type: "search", placeholder: "Find a class", "aria-label": "Find a class", oninput: filter }),
    body: h("div", {}),
    none: h("p", { className: "empty" }),
  };
  section.replaceChildren(h("h2", {}, "Classes"), ...Object.values(parts));
}

function draw() {
  parts.filter.hidden = store.classes.length < 10;
  const domains = new Map(Object.keys(store.info?.domains ?? {}).map((domain) => [domain, []]));
  for (const one of store.classes) domains.get(one.domain)?.push(one);
  const labels = new Set(store.classes.map(({ label }) => label));
  for (const label of rows.keys()) if (!labels.has(label)) rows.delete(label);
  for (const domain of tables.keys()) if (!domains.has(domain)) tables.delete(domain);
  arrange(parts.body, [...domains].map(([domain, all]) => domainTable(domain, all)));
  filter();
}

/** Show the classes whose name holds what was typed. */
function filter() {
  const wanted = parts.filter.hidden ? "" : parts.filter.value.trim().toLowerCase();
  let found = 0;
  for (const element of parts.body.children) {
    let any = false;
    for (const row of element.tBodies[0].rows) {
      row.hidden = !(row.dataset.label ?? row.dataset.of).toLowerCase().includes(wanted);
      any ||= !row.hidden;
    }
    element.hidden = !any;
    found += any;
  }
  parts.none.hidden = found > 0;
  if (!found) parts.none.replaceChildren(...(wanted ? [`No class is called anything like “${wanted}”.`] : ["No classes yet. ", h("a", { href: "#teach" }, "Teach the first ones.")]));
}

/** Give an element these children, and leave those that are in their place. */
function arrange(parent, children) {
  let next = parent.firstElementChild;
  for (const child of children) {
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
  while (next) {
    const after = next.nextElementSibling;
    next.remove();
    next = after;
  }
}

function domainTable(domain, all) {
  if (!tables.has(domain)) tables.set(domain, newTable(domain));
  const { element, count, dot } = tables.get(domain);
  count.textContent = ` ${classes(all.length)}`;
  dot.dataset.colour = colour(domain);
  arrange(element.tBodies[0], all.flatMap(classRows));
  return element;
}

function newTable(domain) {
  const count = h("span", { className: "quiet" });
  const dot = h("span", { className: "dot" });
  const element = h(
    "table",
    {},
    h("caption", {}, dot, h("strong", {}, domain || "no domain"), count,
      domain && h("span", { className: "actions" },
        h("button", { className: "plain", "aria-label": `Rename domain ${domain}`, onclick: () => rename(`${domain}/`, domain, `the domain ${domain}`) }, "Rename"),
        h("button", { className: "plain", "aria-label": `Forget domain ${domain}`, onclick: () => forget({ name: `${domain}/` }, `the domain ${domain} with${count.textContent}`, imagesOf(domain)) }, "Forget"))),
    h("thead", {}, h("tr", {}, ["Class", "Images", "Leave-one-out accuracy", ""].map((text) => h("th", { scope: "col" }, text || h("span", { className: "visually-hidden" }, "Actions"))))),
    h("tbody", {}),
  );
  return { element, count, dot };
}

/** The row of a class, and the row of its images below if it is open. */
function classRows(one) {
  const estimate = accuracy.model === store.info.model ? accuracy.classes.get(one.label) ?? null : undefined; // null: there is none
  const known = rows.get(one.label);
  if (known?.one !== one) rows.set(one.label, { one, estimate, element: classRow(one, estimate) });
  else if (known.estimate !== estimate) {
    known.estimate = estimate;
    known.element.cells[2].replaceChildren(accuracyCell(estimate));
  }
  const { element } = rows.get(one.label);
  const open = element.nextElementSibling?.classList.contains("examples") ? [element.nextElementSibling] : [];
  return [element, ...open];
}

function classRow(one, estimate) {
  const more = h("button", { className: "strip", "aria-expanded": "false", "aria-label": `Images of ${one.label}`, onclick: () => attempt(() => expand(row, more, one)) });
  const row = h(
    "tr",
    { data: { label: one.label } },
    h("th", { scope: "row" }, h("span", { className: "who" }, one.name), more),
    h("td", { className: "number" }, one.shots.toLocaleString("en"), h("span", { className: "unit" }, ` ${one.shots === 1 ? "image" : "images"}`)),
    h("td", {}, accuracyCell(estimate)),
    h("td", { className: "actions" },
      h("button", { className: "plain", "aria-label": `Rename ${one.label}`, onclick: () => rename(one.label, one.name, one.label) }, "Rename"),
      h("button", { className: "plain", "aria-label": `Forget ${one.label}`, onclick: () => forget({ name: one.label }, `${one.label} with ${plural(one.shots, "image")}`, one.shots) }, "Forget")),
  );
  pictureLoader.observe(row);
  return row;
}

function accuracyCell(estimate) {
  if (!estimate) return h("span", { className: "quiet" }, store.classes.length < 2 ? "needs two classes" : estimate === null ? "not measured" : "…");
  const { right, total } = estimate.left_out;
  return h(
    "div",
    { className: "accuracy" },
    total > 1 && h("meter", { min: 0, max: 1, low: 0.6, high: 0.85, optimum: 1, value: right / total, "aria-label": `${right} of ${total}` }),
    h("span", {}, total > 1 ? `${right} of ${total}` : ""),
    h("span", { className: "quiet" }, [estimate.advice, right < total && total > 1 && estimate.taken_for ? `taken for ${split(estimate.taken_for)[1]}` : ""].filter(Boolean).join("; ")),
  );
}

async function estimate() {
  if (accuracy.model === store.info.model || store.classes.length < 2) {
    if (store.classes.length < 2) parts.overall.textContent = "";
    return;
  }
  const found = await get("accuracy");
  accuracy = { model: found.model, classes: new Map(found.classes.map((one) => [one.label, one])) };
  parts.overall.textContent = found.overall
    ? `Leave-one-out accuracy ${percent(found.overall.right / found.overall.total)}: ${found.overall.right} of ${found.overall.total} images are right, each judged by the model without it. On new images like these expect ${percent(found.estimate.low)} to ${percent(found.estimate.high)}.`
    : "Not measured: the model is sealed, or leaving its images out would take too long. Test measures it on labelled images that you drop.";
  parts.hints.replaceChildren(...(found.hints.length ? ["Another method or encoder may be better: ", h("a", { href: "#model" }, "Model"), " measures them."] : []));
  const suspects = found.suspects.filter(({ image, label }) => !kept().includes(`${image} ${label}`));
  parts.suspects.replaceChildren(...(suspects.length ? [suspectList(suspects)] : []));
  draw();
}

const KEPT = "hycal-kept"; // labels that a person confirmed, in this browser

const kept = () => JSON.parse(localStorage.getItem(KEPT) ?? "[]");

const keep = (image, label) => localStorage.setItem(KEPT, JSON.stringify([...kept(), `${image} ${label}`].slice(-10_000)));

function suspectList(suspects) {
  return h(
    "details",
    { open: suspects.length < 4 },
    h("summary", {}, `${plural(suspects.length, "image")} may be mislabelled`),
    h("ul", {}, suspects.slice(0, 20).map(({ image, label, looks_like: other }) =>
      h("li", {}, thumbnail(image), h("span", {}, `${label}, looks like ${other}`),
        h("button", { className: "soft", onclick: () => change("correct", { image, label: other }, () => `It is ${other} now`) }, `It is ${split(other)[1]}`),
        h("button", { className: "plain", onclick: (event) => { keep(image, label); event.target.closest("li").remove(); } }, `Keep ${split(label)[1]}`)))),
  );
}

async function expand(row, button, one) {
  const open = row.nextElementSibling?.classList.contains("examples");
  button.setAttribute("aria-expanded", String(!open));
  if (open) {
    row.nextElementSibling.remove();
    return;
  }
  const { examples } = await get(`examples?label=${encodeURIComponent(one.label)}`);
  row.after(h("tr", { className: "examples", data: { of: one.label } }, h("td", { colSpan: 4 }, h("ul", {}, examples.slice(0, 200).map(({ image, name }) =>
    h("li", {}, thumbnail(image, name), h("button", { className: "plain", title: `Forget ${name}`, "aria-label": `Forget the image ${name}`, onclick: () => (store.info.images > 1 ? change("forget", { image }, forgot) : forget({ image }, `the last image of ${one.label}`, 1)) }, "×")))))));
}

async function rename(old, shown, what) {
  const name = await askFor(`Rename ${what}`, shown);
  if (name && name !== shown) await change("rename", { old, new: name }, (receipt) => `Renamed ${receipt.what}`);
}

const imagesOf = (domain) => store.classes.filter((one) => one.domain === domain).reduce((sum, { shots }) => sum + shots, 0);

const forgot = (receipt) => `Forgot ${receipt.what}`;

async function forget(target, what, images) {
  const left = images < store.info.images ? "" : "Nothing will be left in the model. ";
  const after = store.info.sealed
    ? "Nothing brings it back: the model is sealed. Its part of a covariance of several classes stays, and the calibration."
    : "The model will be the one that never saw these images. You can undo it.";
  if (await confirmed(`Forget ${what}?`, left + after, "Forget")) {
    await change("forget", target, forgot);
  }
}
