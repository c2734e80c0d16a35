// Forms: labelled fields, one submission at a time, and a refusal beside the button.

import { element, fill } from "./elements.js";

let fields = 0;

/** A field with its label. `value` returns what was entered. */
export class Field {
  constructor(label, input, about) {
    const id = `field-${(fields += 1)}`;
    input.id = id;
    this.input = input;
    const isCheck = input.type === "checkbox";
    const words = element(
      "label",
      { for: id },
      label,
      input.required && element("span", { class: "needed" }, " (required)"),
    );
    const hint = about && element("p", { class: "hint", id: `${id}-hint` }, about);
    if (hint) input.setAttribute("aria-describedby", hint.id);
    this.row = element(
      "div",
      { class: isCheck ? "field check" : "field" },
      isCheck ? [input, words] : [words, input],
      hint,
    );
  }

  value() {
    if (this.input.type === "checkbox") return this.input.checked;
    return this.input.value;
  }

  /** Returns the value, or nothing if the field is empty. */
  given() {
    return this.value() === "" ? undefined : this.value();
  }
}

export const field = (label, attributes = {}, about) =>
  new Field(label, element("input", { type: "text", ...attributes }), about);

export const area = (label, attributes = {}, about) =>
  new Field(label, element("textarea", { rows: 4, ...attributes }), about);

/** A choice; each option is a word, or a word and its label. */
export function choice(label, options, attributes = {}, about) {
  const made = options.map((option) => {
    const [value, text] = Array.isArray(option) ? option : [option, option];
    return element("option", { value }, text);
  });
  return new Field(label, element("select", attributes, made), about);
}

/** A form that submits once at a time. `act` may throw; its error is shown and read out. */
export function form(action, parts, act, { beside = [], isInline = false } = {}) {
  const trouble = element("p", { class: "trouble", role: "alert" });
  const submit = element("button", { type: "submit", class: "main" }, action);
  const rows = parts.map((one) => (one instanceof Field ? one.row : one));
  const made = element(
    "form",
    { class: isInline ? "inline" : null },
    rows,
    element("div", { class: "actions" }, submit, beside),
    trouble,
  );
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    fill(trouble);
    try {
      await act();
    } catch (error) {
      fill(trouble, document.createTextNode(error.message));
    } finally {
      submit.disabled = false;
    }
  });
  return made;
}
