// Pile: images without labels. Label what is asked, name groups, watch how far it is, sort and download.

import { batches, get, splitBySize, upload } from "./api.js";
import { confirmed } from "./dialog.js";
import { $, attempt, h, percent, plural, say } from "./dom.js";
import { dropZone } from "./dropzone.js";
import { groups } from "./groups.js";
import { hand } from "./hand.js";
import { sorting } from "./sorting.js";
import { store } from "./store.js";

const POLL = 1500; // milliseconds between two looks at a pile that is being embedded
const CALM = 5000; // and at one that others may label
const GOLDEN = (Math.sqrt(5) - 1) / 2;

let parts = null;
let status = null; // what the server said last of the pile
let sending = false;
let looking; // the next look

export const pile = {
  async show(section) {
    if (!parts) build(section);
    await look();
  },
  leave: () => clearTimeout(looking),
  take,
};

function build(section) {
  const asked = hand({ told, domain });
  parts = {
    zone: dropZone({ title: "Drop a pile of images", hint: "Without labels, in folders or not. It asks about the few that tell most, and sorts the rest.", take, first: "folder" }),
    line: h("p", { className: "pile-line", role: "status", "aria-live": "polite" }),
    progress: h("progress", { hidden: true, "aria-label": "Images of the pile that are ready" }),
    hand: asked.element,
    groups: groups({ changed: () => asked.renew(), domain }),
    sorting: sorting({ told }),
  };
  parts.asked = asked;
  section.replaceChildren(h("h2", { className: "visually-hidden" }, "Pile"), parts.zone, parts.line, parts.progress, parts.hand, parts.groups.element, parts.sorting.element);
}

/** The domain that is proposed for a new class: the only one of the model; of an empty model the name of the folder, as in `hycal learn`. */
function domain() {
  const known = Object.keys(store.info.domains);
  return known.length ? (known.length > 1 ? "" : known[0]) : status.folder;
}

/** Ask the server how far the pile is and what to ask about, and then look again while the view is on the screen. */
async function look() {
  clearTimeout(looking);
  told(await get("pile"));
  if (status.total) await parts.asked.renew();
  lookAgain();
}

/** Follow what others do; the images in hand stay as they are, and their lease is not renewed. */
async function watch() {
  told(await get("pile"));
  lookAgain();
}

function lookAgain() {
  clearTimeout(looking);
  if (!$("pile").hidden) looking = setTimeout(() => attempt(parts.asked.isEmpty() ? look : watch), isWorking() ? POLL : CALM);
}

const isWorking = () => status.total > status.embedded + status.skipped && !status.problem;

/** Show what the server said of the pile. */
function told(said) {
  status = said;
  const { total, embedded, skipped, folder } = said;
  parts.zone.hidden = Boolean(folder);
  parts.zone.classList.toggle("small", total > 0);
  const line = h("p", {}, ...words(said));
  if (line.textContent !== parts.line.textContent) parts.line.replaceChildren(...line.childNodes); // else it would be read aloud again
  Object.assign(parts.progress, { hidden: !sending && embedded + skipped >= total, max: Math.max(total, 1), value: embedded + skipped });
  for (const part of [parts.hand, parts.groups.element, parts.sorting.element]) part.hidden = !total;
  parts.sorting.show(said);
}

/** The live line: how many are labelled, what to expect of the others, what would help. */
function words({ total, embedded, skipped, left_out: left, labelled, problem, people, rest, target, more, folder }) {
  if (!total) return [];
  return [
    h("strong", {}, `Labelled ${labelled.toLocaleString("en")} of ${(total - skipped).toLocaleString("en")}`),
    rest && labelled < embedded && `, estimated accuracy of the rest ${Math.round(100 * rest.low)} to ${Math.round(100 * rest.high)} %`,
    rest && more > 0 && `, about ${plural(more, "more label")} to ${percent(target)}`,
    ".",
    embedded + skipped < total && ` ${(embedded + skipped).toLocaleString("en")} of ${total.toLocaleString("en")} files are ready.`,
    people > 1 && ` ${people} people are labelling.`,
    left > 0 && ` ${plural(left, "file")} of the folder ${folder} are left out here; hycal sort takes all.`,
    problem && ` Not embedded: ${problem}`,
    skipped > 0 && [" ", h("button", { className: "plain", onclick: showSkipped }, `${plural(skipped, "file")} cannot be used`)],
  ].flat();
}

async function showSkipped() {
  const { files } = await attempt(() => get("pile/skipped"));
  await confirmed("Files that cannot be used", h("ul", { className: "left-out" }, files.slice(-200).map(({ name, reason }) => h("li", {}, `${name}: ${reason}`))), "Close");
}

/** Send dropped images in an order of which every beginning is spread over all of them, so that asking can begin early. */
async function take(items) {
  if (status?.folder) {
    say(`The pile is the folder ${status.folder}, which the server was started with. Put the images into it.`, { bad: true });
    return;
  }
  const { fitting, tooLarge } = splitBySize(items, store.info.limits);
  const spread = fitting.map((item, number) => [(number * GOLDEN) % 1, item]).sort(([one], [two]) => one - two).map(([, item]) => item);
  sending = true;
  await attempt(async () => {
    for (const batch of batches(spread, store.info.limits, 32)) {
      told(await upload("pile/images", batch));
      if (status.embedded) parts.asked.renew();
    }
  });
  sending = false;
  if (tooLarge.length) say(`${plural(tooLarge.length, "file")} too large, such as ${tooLarge[0].path}: ${tooLarge[0].problem}.`, { bad: true });
  await attempt(look);
}
