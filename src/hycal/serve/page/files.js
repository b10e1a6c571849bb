// Files of a drop or a file input, folders included, each with its path below what was dropped.

import { post } from "./api.js";

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

const isLearned = (split) => !split || split === "train";

/**
 * Group the files of some splits by class, by default those that are learned; files beside class folders are loose. The
 * server says what the folders mean, as for `hycal learn`.
 */
export async function groupByClass(items, isWanted = isLearned) {
  const counts = new Map();
  for (const item of items) counts.set(folderOf(item), (counts.get(folderOf(item)) ?? 0) + 1);
  const { places: read } = await post("folders", { folders: Object.fromEntries(counts) });
  const places = new Map(read.map((place) => [place.folder, place]));
  const groups = new Map();
  let [left, loose] = [0, 0];
  for (const item of items) {
    const { folder, domain, split, name } = places.get(folderOf(item));
    if (folder && !name) loose += 1;
    else if (!isWanted(split)) left += 1;
    else {
      const key = `${domain}/${name}`;
      if (!groups.has(key)) groups.set(key, { domain, name, items: [] });
      groups.get(key).items.push(item);
    }
  }
  return { groups: [...groups.values()], left, loose };
}

const folderOf = ({ path }) => path.split("/").slice(0, -1).join("/");
