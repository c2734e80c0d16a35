// The bar of a campaign: each device of the audience is in exactly one part of it.

import { count, element, share } from "./elements.js";

/** Parts in the order of the bar. A delivered device counts as accepted in the totals, and as delivered alone here. */
const PARTS = [
  ["delivered", (totals) => totals.delivered],
  ["accepted", (totals) => totals.accepted - totals.delivered],
  ["rejected", (totals) => totals.rejected],
  ["failed", (totals) => totals.failed],
  ["expired", (totals) => totals.expired],
  ["collapsed", (totals) => totals.collapsed],
  ["canceled", (totals) => totals.canceled],
  ["sending", (totals) => totals.sending],
  ["queued", (totals) => totals.queued],
];

/** The reason of what went well. */
const NO_REASON = "none";

/** Returns the devices in each part. */
export const parts = (totals) => PARTS.map(([state, devices]) => ({ state, devices: devices(totals) }));

/** Returns the sum of all parts: the audience. */
export const sum = (totals) => parts(totals).reduce((all, { devices }) => all + devices, 0);

export function bar(totals) {
  const filled = parts(totals).filter(({ devices }) => devices > 0);
  const words = filled.map(({ state, devices }) => `${count(devices)} ${state}`).join(", ");
  const pieces = filled.map(({ state, devices }) => {
    const piece = element("span", { class: "piece", "data-state": state });
    piece.style.flexGrow = String(devices);
    return piece;
  });
  return element("div", { class: "bar", role: "img", "aria-label": words || "nobody yet" }, pieces);
}

/** The parts as a table, with the reasons of each part. */
export function legend(totals, reasons) {
  const all = sum(totals);
  const rows = parts(totals).map(({ state, devices }) => {
    const why = reasons.filter((reason) => reason.state === state && reason.reason !== NO_REASON);
    const list =
      why.length > 0 &&
      element(
        "ul",
        { class: "reasons" },
        why.map((one) => element("li", {}, `${one.reason}: ${count(one.count)}`)),
      );
    const swatch = element("span", { class: "swatch", "data-state": state, "aria-hidden": "true" });
    return element(
      "tr",
      { "data-part": state, class: devices === 0 ? "none" : null },
      element("th", { scope: "row" }, swatch, state),
      element("td", { class: "number" }, count(devices)),
      element("td", { class: "number" }, share(devices, all)),
      element("td", {}, list || "–"),
    );
  });
  const titles = ["State", "Devices", "Share", "Reasons"];
  return element(
    "table",
    { class: "legend" },
    element("caption", { class: "unseen" }, "Devices by state"),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        titles.map((title) => element("th", { scope: "col" }, title)),
      ),
    ),
    element("tbody", {}, rows),
    element(
      "tfoot",
      {},
      element(
        "tr",
        {},
        element("th", { scope: "row" }, "Sum"),
        element("td", { class: "number", id: "sum" }, count(all)),
        element("td", { class: "number" }, share(all, all)),
        element("td", {}, ""),
      ),
    ),
  );
}
