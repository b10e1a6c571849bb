// Files that people drop, paste or choose, folders included, each with its path below what was dropped.

/** Return [{file, path}] of a drop; folders are walked. */
export async function dropped(transfer) {
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
export const chosen = (input) =>
  [...input.files]
    .map((file) => ({ file, path: file.webkitRelativePath || file.name }))
    .filter(({ path }) => !path.split("/").some((part) => part.startsWith(".")));

const TO_LEARN = new Set(["train", "training"]);
const TO_TEST = new Set(["test", "testing", "val", "valid", "validation"]);

/**
 * Sort files into classes by their folders, as `hycal learn` does: the last folder is the class, the one above it the
 * domain; folders called train and test are splits, and only train is learned.
 */
export function grouped(items) {
  const groups = new Map();
  let tests = 0;
  for (const item of items) {
    const folders = item.path.split("/").slice(0, -1);
    if (folders.some((folder) => TO_TEST.has(folder.toLowerCase()))) {
      tests += 1;
      continue;
    }
    const plain = folders.filter((folder) => !TO_LEARN.has(folder.toLowerCase()));
    const name = plain.at(-1) ?? "";
    const domain = plain.at(-2) ?? "";
    const key = `${domain}/${name}`;
    if (!groups.has(key)) groups.set(key, { domain, name, items: [] });
    groups.get(key).items.push(item);
  }
  return { groups: [...groups.values()], tests };
}
