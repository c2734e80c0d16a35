// For the operator: servers, the audit trail, and the settings.

import { read } from "../api.js";
import { badge, code, count, element, fill, instant } from "../elements.js";
import { field, form } from "../forms.js";
import { PagedTable, table } from "../lists.js";
import { poll } from "../polling.js";

const INTERVAL_MS = 5_000;
const PAGE_MAX_COUNT = 50;

export async function nodes({ content, header, signal }) {
  header("Nodes");
  const columns = [
    ["Host", (one) => one.host || "not reported"],
    ["Instance", (one) => code(one.instance)],
    ["Roles", (one) => one.roles.join(", ")],
    ["Version", (one) => one.version],
    ["Last heartbeat", (one) => `${count(one.silent_ms)} ms ago`],
    ["Scheduler", (one) => (one.fires ? "fires schedules" : "stands by")],
    ["This answer", (one) => (one.answers ? "by this server" : "–")],
    ["Parked lanes", (one) => parked(one.parked)],
  ];
  await poll(signal, content, async () => {
    const { nodes: all } = await read("/v1/nodes", { signal });
    fill(content, table("Servers", columns, all));
    return INTERVAL_MS;
  });
}

function parked(lanes) {
  if (lanes.length === 0) return "none";
  return element(
    "ul",
    {},
    lanes.map((lane) => element("li", {}, `${lane.provider} of ${lane.app}: ${lane.reason}. ${lane.detail}`)),
  );
}

const lines = (...all) =>
  element(
    "div",
    {},
    all.filter(Boolean).map((line) => element("div", {}, line)),
  );

export async function audit({ content, header, signal }) {
  const filters = {
    action: field("Action", { autocomplete: "off", placeholder: "credential.put", spellcheck: "false" }),
    since: field("Since", { type: "datetime-local" }),
    app: field("App", { autocomplete: "off", spellcheck: "false" }),
  };
  const columns = [
    ["At", (one) => instant(one.at)],
    ["Action", (one) => one.action],
    ["Object", (one) => lines(code(one.thing), one.app && one.app !== one.thing && code(one.app))],
    ["Detail", (one) => one.detail],
    ["By", (one) => lines(one.person_name ?? one.key_name ?? one.key ?? one.by, one.person && code(one.person), one.address && `from ${one.address}`)],
    ["Outcome", (one) => badge(one.outcome)],
  ];
  const load = async (before) => {
    const since = filters.since.given() && new Date(filters.since.value()).toISOString();
    const query = { action: filters.action.given(), app: filters.app.given(), since, before, limit: PAGE_MAX_COUNT };
    const page = await read("/v1/audit", { query, signal });
    return { entries: page.entries, next: page.next };
  };
  const list = new PagedTable("Audit trail", columns, load, "No entry.");
  await list.show();
  header("Audit trail");
  fill(
    content,
    form("Show", Object.values(filters), () => list.restart(), { isInline: true }),
    list.place,
  );
}

export async function settings({ content, header, signal }) {
  const { settings: all } = await read("/v1/settings", { signal });
  header("Settings");
  const columns = [
    ["Setting", explained],
    ["Value", (one) => code(one.value)],
    ["Origin", (one) => (one.origin === "default" ? "default" : lines(one.origin, `default: ${one.default}`))],
  ];
  const about =
    "The settings of the server that answers, as its file and its environment have them. Options of `stentor serve` are not listed.";
  fill(content, element("p", {}, about), table("Settings", columns, all));
}

/** The name of a setting, which unfolds its meaning. */
const explained = ({ key, about }) =>
  about ? element("details", {}, element("summary", {}, code(key)), element("p", {}, about)) : code(key);
