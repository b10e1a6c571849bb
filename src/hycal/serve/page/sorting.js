// The end of a pile: sort it into a folder, take that back, download it. It can be done at any time, and again.

import { post } from "./api.js";
import { confirmed } from "./dialog.js";
import { attempt, classes, fill, h, percent, plural, say } from "./dom.js";
import { store } from "./store.js";

const ERRORS = [0.01, 0.02, 0.05, 0.1, 0.2];

/** Make the part that sorts; `told` gets what the server says of the pile. */
export function sorting({ told }) {
  const errors = h("select", { id: "pile-error" }, ERRORS.map((error) => h("option", { value: error, selected: error === 0.05 }, percent(error))));
  const sort = h("button", { className: "main", onclick: () => attempt(sortIt) }, "Sort");
  const unsort = h("button", { className: "soft", onclick: () => attempt(unsortIt) }, "Remove the sorted copies");
  const download = h("a", { className: "button soft", download: "", href: "/api/pile/download" }, "Download as ZIP");
  const clear = h("button", { className: "plain", onclick: () => attempt(clearIt) }, "Another pile");
  const report = h("p", { className: "quiet", role: "status" });
  const element = h("section", { className: "pile-part", "aria-label": "Sorting" }, h("h3", {}, "Sort"),
    h("p", { className: "quiet" }, "At any time: every label is kept at once. Doubtful images go to unsure, those that fit no class to unknown."),
    h("p", {}, h("label", { for: "pile-error" }, "Wrong images to expect in the class folders: "), errors),
    h("p", { className: "buttons" }, sort, unsort, download, clear), report);
  errors.addEventListener("change", link);

  function link() {
    download.href = `/api/pile/download?error=${errors.value}`;
  }

  /** Show what can be done with the pile as it is. */
  function show(pile) {
    const ready = Boolean(store.info?.classes && pile.embedded);
    fill(sort, `Sort into ${pile.out}`);
    sort.hidden = !pile.folder;
    sort.disabled = errors.disabled = !ready;
    unsort.hidden = !pile.sorted;
    clear.hidden = Boolean(pile.folder);
    download.hidden = !ready;
    download.className = pile.folder ? "button soft" : "button main";
    link();
  }

  async function sortIt() {
    sort.disabled = true;
    fill(report, "Sorting…");
    try {
      const done = await post("pile/sort", { error: Number(errors.value) });
      fill(report, `${plural(done.sorted, "image")} of ${classes(done.classes)} are in ${done.folder}, ${store.info.classes > 1 ? `about ${percent(done.wrong)} of them wrong` : "the only class"}; ${done.unsure} unsure, ${done.unknown} unknown.`,
        done.problems.length > 0 && ` ${plural(done.problems.length, "image")} could not be copied, such as ${done.problems[0].name}: ${done.problems[0].reason}.`);
      unsort.hidden = false;
      say(`Sorted into ${done.folder}.`);
    } catch (error) {
      fill(report);
      throw error;
    } finally {
      sort.disabled = false;
    }
  }

  async function unsortIt() {
    const { folder } = await post("pile/unsort");
    unsort.hidden = true;
    fill(report);
    say(`${folder} is removed again; the pile is as it was.`);
  }

  async function clearIt() {
    if (await confirmed("Start another pile", "The dropped images leave the server. What was learned stays learned.", "Start another")) told(await post("pile/clear"));
  }

  return { element, show };
}
