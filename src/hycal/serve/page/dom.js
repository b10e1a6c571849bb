// Small helpers: elements without templates, messages, numbers for people.

import { readable, textNodes } from "./escaping.js";

export const $ = (id) => document.getElementById(id);

const READ = new Set(["title", "alt", "aria-label"]); // people read them, and so they are escaped

/** Give an element these children: nodes as they are, text with the escapes of names that may come from anywhere. */
export function fill(element, ...children) {
  const shown = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  element.replaceChildren(...shown.flatMap((child) => (child instanceof Node ? child : textNodes(child))));
  return element;
}

/** Make an element: properties are set, attributes with a dash or `role` are written, children appended as nodes or text. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, given] of Object.entries(properties)) {
    const value = READ.has(name) ? readable(given) : given;
    if (given === undefined || given === null || given === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name.includes("-") || name === "role" || name === "for" || name === "list") element.setAttribute(name, value);
    else element[name] = value;
  }
  return fill(element, ...children);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, READ.has(name) ? readable(value) : value);
  element.append(...children.map((child) => (child instanceof Node ? child : readable(child))));
  return element;
}

let hiding;

/** Show a message, also to screen readers, with a button if there is an action. */
export function say(message, { action, onaction, bad = false } = {}) {
  const toast = $("toast");
  clearTimeout(hiding);
  toast.className = bad ? "shown bad" : "shown";
  toast.replaceChildren(h("span", {}, message));
  if (action) toast.append(h("button", { className: "plain", onclick: (event) => { event.target.disabled = true; hide(); onaction(); } }, action));
  toast.append(h("button", { className: "plain", "aria-label": "Dismiss", onclick: hide }, "×"));
  if (!bad) hiding = setTimeout(hide, 6000);
}

function hide() {
  $("toast").className = "";
}

/** Run `work`; show its error as a message if it fails. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    say(error.message, { bad: true });
    return undefined;
  }
}

export const plural = (count, word, words = `${word}s`) => `${count.toLocaleString("en")} ${count === 1 ? word : words}`;

export const classes = (count) => plural(count, "class", "classes");

export const percent = (share) => (share > 0.995 && share < 1 ? "> 99 %" : `${Math.round(100 * share)} %`);

/** Say how probable one of the candidates is; a model without another class cannot tell. */
export const sureness = ({ probability }, candidates) => (candidates.length > 1 ? percent(probability) : "the only class");

export function split(label) {
  const slash = label.indexOf("/");
  return slash < 0 ? ["", label] : [label.slice(0, slash), label.slice(slash + 1)];
}

/** Make the element of a label: the class, then the domain in small letters. */
export function labelElement(label) {
  const [domain, name] = split(label);
  return h("span", { className: "label" }, h("strong", {}, name), domain && h("span", { className: "domain" }, domain));
}

export function thumbnail(image, alt = "") {
  return h("img", { loading: "lazy", className: "thumb", alt, width: 48, height: 48, src: `/api/thumbnails/${image}` }); // `loading` comes first: otherwise the source is fetched at once
}

/** Wait until the next frame is drawn, so that earlier changes are visible. */
export const nextFrame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
