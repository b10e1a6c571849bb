// Files of a drop or a file input, folders included, each with its path below what was dropped.

/** Return [{file, path}] of a drop; folders are walked. */
export async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, path: file.name }));
  const found = [];
  for (const entry of entries) await walk(entry, "", found);
  return found;
}

async function walk(entry, parent, found) {
  if (entry.name.startsWith(".")) return;
  const path = parent ? `${parent}/${entry.name}` : entry.name;
  if (entry.isFile) {
    found.push({ file: await new Promise((done, failed) => entry.file(done, failed)), path });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const part = await new Promise((done, failed) => reader.readEntries(done, failed)); // 100 at a time
    if (!part.length) return;
    part.sort((one, two) => one.name.localeCompare(two.name, "en", { numeric: true }));
    for (const child of part) await walk(child, path, found);
  }
}

/** Return [{file, path}] of a file input, plain or for folders. */
export const chosenFiles = (input) =>
  [...input.files]
    .map((file) => ({ file, path: file.webkitRelativePath || file.name }))
    .filter(({ path }) => !path.split("/").some((part) => part.startsWith(".")));

const SPLITS = new Map([
  ["train", "train"], ["training", "train"],
  ["val", "val"], ["valid", "val"], ["validation", "val"],
  ["test", "test"], ["testing", "test"],
]);

const splitOf = (folder) => SPLITS.get(folder.toLowerCase());

/**
 * Return domain, split and class of a file from the folders above it, as `hycal learn` reads them. The first folder was
 * dropped; below it are CLASS, SPLIT/CLASS, DOMAIN/CLASS or DOMAIN/SPLIT/CLASS, and deeper folders belong to the class.
 * If there is no folder below, the first is the class.
 */
function placeOf([root = "", ...folders]) {
  if (!folders.length) return { domain: "", name: root };
  const own = splitOf(root) ? "" : root; // photos/train was dropped: the page cannot know the folder above it
  if (folders.length > 1 && splitOf(folders[0])) return { domain: own, split: splitOf(folders[0]), name: folders[1] };
  if (folders.length > 2 && splitOf(folders[1])) return { domain: folders[0], split: splitOf(folders[1]), name: folders[2] };
  return folders.length > 1 ? { domain: folders[0], name: folders[1] } : { domain: own, name: folders[0] };
}

const isLearned = (kind) => !kind || kind === "train";

/** Group the files of some splits by class, by default those that are learned; files beside class folders are loose. */
export function groupByClass(items, isWanted = isLearned) {
  const groups = new Map();
  const folders = new Map(items.map((item) => [item, item.path.split("/").slice(0, -1)]));
  const several = new Set([...folders.values()].map(([root]) => root)).size > 1;
  const parents = new Set([...folders.values()].filter((all) => all.length > 1).map(([root]) => root));
  let [left, loose] = [0, 0];
  for (const [item, all] of folders) {
    const isOneOfSplits = several && all.length > 1 && splitOf(all[0]);
    const { domain, split, name } = placeOf(isOneOfSplits ? ["", ...all] : all);
    if (all.length === 1 && parents.has(all[0])) loose += 1;
    else if (!isWanted(split)) left += 1;
    else {
      const key = `${domain}/${name}`;
      if (!groups.has(key)) groups.set(key, { domain, name, items: [] });
      groups.get(key).items.push(item);
    }
  }
  return { groups: [...groups.values()], left, loose };
}
