// Lists by pages, as tables that become cards on a narrow screen.

import { button, element, fill } from "./elements.js";

/**
 * A table. Each column is a title and a function from an entry to the content of its cell. Its roles are named because a narrow screen
 * shows it as cards.
 */
export function table(caption, columns, entries, empty = "None.") {
  if (entries.length === 0) return element("p", { class: "empty" }, empty);
  const head = columns.map(([title]) => element("th", { scope: "col", role: "columnheader" }, title));
  const cells = (entry) =>
    columns.map(([title, content]) => element("td", { role: "cell", "data-label": title }, content(entry) ?? "–"));
  return element(
    "section",
    { class: "scroll", tabindex: 0, "aria-label": caption },
    element(
      "table",
      { role: "table" },
      element("caption", { class: "unseen" }, caption),
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, head)),
      element(
        "tbody",
        { role: "rowgroup" },
        entries.map((entry) => element("tr", { role: "row" }, cells(entry))),
      ),
    ),
  );
}

/** A list that shows one page at a time. `load` gets a cursor and returns the entries and the cursor of the next page. */
export class PagedTable {
  constructor(caption, columns, load, empty) {
    Object.assign(this, { caption, columns, load, empty, cursors: [undefined], loads: 0 });
    this.place = element("div", { class: "paged" });
  }

  /** True on the first page, which alone is worth reading again. */
  isFirst() {
    return this.cursors.length === 1;
  }

  async show() {
    const load = (this.loads += 1);
    const { entries, next, beside } = await this.load(this.cursors.at(-1));
    // An answer that comes late must not replace that of a later question.
    if (load !== this.loads) return;
    const back = !this.isFirst() && button("Previous page", () => this.turn(() => this.cursors.pop()));
    const on = next && button("Next page", () => this.turn(() => this.cursors.push(next)));
    const pages =
      (back || on) && element("div", { class: "pages" }, back, element("span", {}, `Page ${this.cursors.length}`), on);
    fill(this.place, beside, table(this.caption, this.columns, entries, this.empty), pages);
  }

  async turn(change) {
    change();
    await this.show();
    this.place.querySelector(".scroll")?.focus();
  }

  /** Begins at the first page again, because a filter has changed. */
  async restart() {
    this.cursors = [undefined];
    await this.show();
  }
}
