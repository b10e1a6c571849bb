// The server, as functions. Every error carries a message for people.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(path, options) {
  let answer;
  try {
    answer = await fetch(`/api/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer. Is `hycal serve` still running? Nothing was lost.");
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new ApiError(answer.status, message(answer.status, body.detail));
  return body;
}

function message(status, detail) {
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail) && detail.length) return detail.map((item) => item.msg).join("; ");
  return `The server answered ${status}.`;
}

export const get = (path) => call(path);

export const post = (path, body = {}) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export function upload(path, items, signal) {
  const form = new FormData();
  for (const { file, path: name } of items) form.append("files", file, name || file.name);
  return call(path, { method: "POST", body: form, signal });
}

/** Return the files that the server takes, and those that are too large, each with the problem. */
export function splitBySize(items, { image_bytes: most }) {
  const fitting = items.filter(({ file }) => file.size <= most);
  const tooLarge = items
    .filter(({ file }) => file.size > most)
    .map((item) => ({ ...item, problem: `${item.file.size.toLocaleString("en")} bytes; the limit is ${most.toLocaleString("en")}` }));
  return { fitting, tooLarge };
}

/** Split files into requests within the limits of the server. */
export function batches(items, limits, most = 16) {
  const found = [];
  let current = [];
  let bytes = 0;
  for (const item of items) {
    const full = current.length >= Math.min(most, limits.images) || bytes + item.file.size > limits.request_bytes / 4;
    if (current.length && full) {
      found.push(current);
      current = [];
      bytes = 0;
    }
    current.push(item);
    bytes += item.file.size;
  }
  if (current.length) found.push(current);
  return found;
}
