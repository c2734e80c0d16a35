// The way to the views: the address, the links, and the choice of the app.

import { here, isAppKey, isRoot, may, mayRead, read } from "./api.js";
import { element, fill, link, part } from "./elements.js";

const SERVER_LINKS = [
  ["overview", "Overview"],
  ["apps", "Apps"],
  ["nodes", "Nodes"],
  ["audit", "Audit trail"],
  ["settings", "Settings"],
];
const APP_LINKS = [
  ["campaigns", "Campaigns"],
  ["compose", "Compose"],
  ["schedules", "Schedules"],
  ["proposals", "Approvals"],
  ["devices", "Devices"],
  ["users", "Users"],
  ["groups", "Groups"],
  ["topics", "Topics"],
  ["credentials", "Credentials"],
  ["upstream", "Upstream"],
  ["app", "Keys"],
];
/** What needs the root key. */
const OF_ROOT = ["nodes", "audit", "settings"];
/** What needs a key with the scope admin, what needs one with the scope send, and what this scope reads. */
const OF_ADMIN = ["credentials", "app"];
const OF_SENDER = ["compose"];
const OF_SENT = ["campaigns", "schedules", "proposals", "upstream"];

let known = [];

/** Returns the parts of the address: `#/view` of the server, or `#/app_…/view/ids`. */
export function place() {
  const [first = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (!first.startsWith("app_")) return { view: first || "overview", ids: rest };
  const [view = "campaigns", ...ids] = rest;
  return { app: first, view, ids };
}

/** An address that somebody typed may not be decodable. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Shows the links that the session's key or person may follow. */
export function navigation(current) {
  const allowed = ([view]) => {
    if (OF_ROOT.includes(view)) return isRoot();
    if (OF_ADMIN.includes(view)) return may("admin");
    if (OF_SENDER.includes(view)) return may("send");
    return !OF_SENT.includes(view) || mayRead("send");
  };
  const list = (links, start) =>
    element(
      "ul",
      {},
      links
        .filter(allowed)
        .map(([view, text]) => element("li", {}, item(`${start}${view}`, text, isPartOf(current, view)))),
    );
  const parts = [element("h2", {}, "Server"), list(SERVER_LINKS, "/")];
  if (here.app) parts.push(element("h2", {}, "App"), appChoice(), list(APP_LINKS, `/${here.app}/`));
  fill(part("navigation"), parts);
  closeMenu();
}

/** The deliveries of one device have no link of their own. */
const isPartOf = (current, view) => view === (current === "deliveries" ? "campaigns" : current);

const item = (path, text, isCurrent) => link(path, text, { "aria-current": isCurrent && "page" });

function appChoice() {
  if (isAppKey()) return element("p", { class: "app" }, known.find((one) => one.id === here.app)?.name ?? here.app);
  const options = known.map(({ id, name }) => element("option", { value: id, selected: id === here.app }, name));
  const choose = () => (location.hash = `#/${select.value}/campaigns`);
  const select = element("select", { "aria-label": "App", onchange: choose }, options);
  return select;
}

/** Reads the apps again, and chooses one if the chosen one is gone. */
export async function refreshApps() {
  known = (await read("/v1/apps")).apps;
  if (!known.some(({ id }) => id === here.app)) here.app = known[0]?.id ?? null;
  navigation(place().view);
}

function closeMenu() {
  part("menu").setAttribute("aria-expanded", "false");
  part("navigation").classList.remove("open");
}

part("menu").addEventListener("click", () => {
  const opens = part("menu").getAttribute("aria-expanded") !== "true";
  part("menu").setAttribute("aria-expanded", String(opens));
  part("navigation").classList.toggle("open", opens);
});

// The address names the view, so that the link to the content cannot name a place.
part("skip").addEventListener("click", (event) => {
  event.preventDefault();
  part("view").focus();
});
