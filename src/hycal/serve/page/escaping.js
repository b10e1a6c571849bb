// Text that the page shows and saves: the rules of `hycal.escaping`, for names that a stranger's folder or model may have.

const PLAIN = /^[ -~]*$/; // most text: a table of a thousand classes has ten thousand pieces
const HIDDEN = /[\p{C}\p{Z}]/gu; // controls, marks of direction, unassigned characters, and spaces of another kind
const KEPT = " \n";
const LETTERS = String.raw`\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}`; // written from right to left
const RIGHT_TO_LEFT = new RegExp(String.raw`([${LETTERS}](?:[${LETTERS}\p{M} ]*[${LETTERS}\p{M}])?)`, "u");

function escaped(letter) {
  const code = letter.codePointAt(0);
  const digits = (length) => code.toString(16).padStart(length, "0");
  if (code < 0x100) return { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[letter] ?? `\\x${digits(2)}`;
  return code < 0x10000 ? `\\u${digits(4)}` : `\\U${digits(8)}`;
}

/** Return text with an escape for each character that is not printed as itself; lines stay unless `kept` says otherwise. */
export const readable = (text, kept = KEPT) => (PLAIN.test(text) ? String(text) : String(text).replace(HIDDEN, (letter) => (kept.includes(letter) ? letter : escaped(letter))));

/** Return the nodes of a text. Letters that are written from right to left move nothing around them. */
export function textNodes(text) {
  if (PLAIN.test(text)) return [document.createTextNode(text)];
  return readable(text).split(RIGHT_TO_LEFT).map((part, number) => {
    if (number % 2 === 0) return document.createTextNode(part);
    const element = document.createElement("bdi");
    element.textContent = part;
    return element;
  });
}

/** Return text as a quoted cell of CSV that a spreadsheet does not compute. */
export function csvCell(text) {
  const shown = readable(text, " ");
  const guarded = /^\s*[=+\-@＝＋－＠]/.test(shown) && !/^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(shown) ? `'${shown}` : shown;
  return `"${guarded.replaceAll('"', '""')}"`;
}
