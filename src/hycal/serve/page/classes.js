// The classes: their images, how well each would be told, and what can be done with them.

import { get } from "./api.js";
import { askFor, confirmed } from "./dialog.js";
import { classes, h, percent, plural, split, thumbnail, trying } from "./dom.js";
import { change, colour, store } from "./store.js";

let parts = null;
let accuracy = { model: "", classes: new Map() };

export const table = {
  show(section) {
    if (!parts) build(section);
    draw();
    trying(estimate);
  },
};

function build(section) {
  parts = {
    overall: h("p", { className: "quiet", role: "status" }),
    suspects: h("div", { className: "suspects" }),
    filter: h("input", { type: "search", placeholder: "Find a class", "aria-label": "Find a class", oninput: draw }),
    body: h("div", {}),
  };
  section.replaceChildren(h("h2", {}, "Classes"), ...Object.values(parts));
}

function draw() {
  const wanted = parts.filter.value.trim().toLowerCase();
  parts.filter.hidden = store.classes.length < 10;
  const domains = Map.groupBy ? Map.groupBy(store.classes, (one) => one.domain) : grouped(store.classes);
  const shown = [...domains].map(([domain, all]) => [domain, all.filter(({ label }) => label.toLowerCase().includes(wanted)), all]);
  parts.body.replaceChildren(
    ...(store.classes.length
      ? shown.filter(([, found]) => found.length).map(([domain, found, all]) => domainTable(domain, found, all))
      : [h("p", { className: "empty" }, "No classes yet. ", h("a", { href: "#teach" }, "Teach the first ones."))]),
  );
}

function grouped(rows) {
  const found = new Map();
  for (const row of rows) found.set(row.domain, [...(found.get(row.domain) ?? []), row]);
  return found;
}

function domainTable(domain, found, all) {
  return h(
    "table",
    {},
    h("caption", {}, h("span", { className: "dot", data: { colour: colour(domain) } }), h("strong", {}, domain || "no domain"), h("span", { className: "quiet" }, ` ${classes(all.length)}`),
      domain && h("span", { className: "actions" },
        h("button", { className: "plain", "aria-label": `Rename domain ${domain}`, onclick: () => rename(domain, domain, `the domain ${domain}`) }, "Rename"),
        h("button", { className: "plain", "aria-label": `Forget domain ${domain}`, onclick: () => forget(domain, `the domain ${domain} with ${classes(all.length)}`) }, "Forget"))),
    h("thead", {}, h("tr", {}, ["Class", "Images", "Told right unseen", ""].map((text) => h("th", { scope: "col" }, text || h("span", { className: "unseen" }, "Actions"))))),
    h("tbody", {}, found.map(classRow)),
  );
}

function classRow(one) {
  const estimate = accuracy.model === store.info.model ? accuracy.classes.get(one.label) : undefined;
  const more = h("button", { className: "strip", "aria-expanded": "false", "aria-label": `Images of ${one.label}`, onclick: () => trying(() => expand(row, more, one)) }, one.images.map((image) => thumbnail(image)));
  const row = h(
    "tr",
    { data: { label: one.label } },
    h("th", { scope: "row" }, h("span", { className: "who" }, one.name), more),
    h("td", { className: "number" }, one.shots.toLocaleString("en"), h("span", { className: "unit" }, ` ${one.shots === 1 ? "image" : "images"}`)),
    h("td", {}, told(estimate)),
    h("td", { className: "actions" },
      h("button", { className: "plain", "aria-label": `Rename ${one.label}`, onclick: () => rename(one.label, one.name, one.label) }, "Rename"),
      h("button", { className: "plain", "aria-label": `Forget ${one.label}`, onclick: () => forget(one.label, `${one.label} with ${plural(one.shots, "image")}`) }, "Forget")),
  );
  return row;
}

function told(estimate) {
  if (!estimate) return h("span", { className: "quiet" }, store.classes.length > 1 ? "…" : "needs two classes");
  const { right, total } = estimate.left_out;
  return h(
    "div",
    { className: "told" },
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
    ? `Each image judged by the model that never saw it: ${percent(found.overall.right / found.overall.total)} right (${found.overall.right} of ${found.overall.total}).`
    : "";
  parts.suspects.replaceChildren(...(found.suspects.length ? [suspected(found.suspects)] : []));
  if (!parts.body.contains(document.activeElement)) draw();
  else for (const row of parts.body.querySelectorAll("tr[data-label]")) row.children[2].replaceChildren(told(accuracy.classes.get(row.dataset.label)));
}

function suspected(suspects) {
  return h(
    "details",
    { open: suspects.length < 4 },
    h("summary", {}, `${plural(suspects.length, "image")} may be mislabelled`),
    h("ul", {}, suspects.slice(0, 20).map(({ image, label, looks_like: other }) =>
      h("li", {}, thumbnail(image), h("span", {}, `${label}, looks like ${other}`),
        h("button", { className: "soft", onclick: () => change("correct", { image, label: other }, () => `It is ${other} now`) }, `It is ${split(other)[1]}`)))),
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
  row.after(h("tr", { className: "examples" }, h("td", { colSpan: 4 }, h("ul", {}, examples.slice(0, 200).map(({ image, name }) =>
    h("li", {}, thumbnail(image, name), h("button", { className: "plain", title: `Forget ${name}`, "aria-label": `Forget the image ${name}`, onclick: () => change("forget", { image }, () => `Forgot one image of ${one.label}`) }, "×")))))));
}

async function rename(old, shown, what) {
  const name = await askFor(`Rename ${what}`, shown);
  if (name && name !== shown) await change("rename", { old, new: name }, () => `Renamed to ${name}`);
}

async function forget(name, what) {
  if (await confirmed(`Forget ${what}?`, "The model will be the one that never saw these images. You can undo it.", "Forget")) {
    await change("forget", { name }, (receipt) => `Forgot ${receipt.what}`);
  }
}
