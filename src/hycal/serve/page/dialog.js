// Questions in a dialog. It takes the focus, Escape closes it, and the focus returns.

import { $, h } from "./dom.js";

function open(title, content, confirm) {
  const dialog = $("dialog");
  return new Promise((done) => {
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      content,
      h("p", { className: "buttons" }, h("button", { className: "main", value: "yes" }, confirm), h("button", { className: "soft", value: "", formNoValidate: true }, "Cancel")),
    );
    dialog.replaceChildren(form);
    dialog.returnValue = "";
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
    form.querySelector("input")?.select();
  });
}

export const confirmed = (title, text, confirm) => open(title, h("p", {}, text), confirm);

export async function askFor(title, value) {
  const input = h("input", { value, required: true, maxLength: 200, "aria-label": "New name", autocomplete: "off" });
  return (await open(title, input, "Rename")) ? input.value.trim() : null;
}
