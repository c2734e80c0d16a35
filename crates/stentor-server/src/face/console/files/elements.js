// Elements and texts of the pages. Whatever comes from the server is set as text and never becomes markup.

/** Creates an element: attributes by name, handlers as `onclick`, and children, of which texts become text nodes. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

export const part = (id) => document.getElementById(id);

const counts = new Intl.NumberFormat("en");
const shares = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const instants = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export const count = (number) => counts.format(number);
export const share = (number, all) => shares.format(all === 0 ? 0 : number / all);

/** An instant in the reader's time zone; the exact text is its title. */
export function instant(text) {
  if (!text) return "–";
  return element("time", { datetime: text, title: text }, instants.format(new Date(text)));
}

/** A duration in its two largest units. */
export function duration(seconds) {
  const units = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first === -1) return "0 s";
  let left = Math.round(seconds);
  const words = [];
  for (const [unit, size] of units.slice(first, first + 2)) {
    words.push(`${Math.floor(left / size)} ${unit}`);
    left %= size;
  }
  return words.join(" ");
}

export const link = (path, text, attributes = {}) => element("a", { href: `#${path}`, ...attributes }, text);

export const code = (text) => element("code", {}, text ?? "–");

/** A state as a word with a colour; the word alone says everything. */
export const badge = (state) => element("span", { class: "badge", "data-state": state }, state);

export function button(text, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, text);
}

/** A list of names and values; pairs without a value are left out. */
export function facts(pairs) {
  const given = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return element(
    "dl",
    { class: "facts" },
    given.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
}

export function section(title, ...content) {
  return element("section", {}, element("h2", {}, title), content);
}

/** Text that may be long and is shown as it is. Readers can scroll it with the keyboard. */
export function source(text, label) {
  return element("section", { class: "source", tabindex: 0, "aria-label": label }, element("pre", {}, text));
}

/** Replaces the content of an element. */
export function fill(place, ...content) {
  place.replaceChildren(...content.flat(Infinity).filter(Boolean));
}
