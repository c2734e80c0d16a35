// The frame of the console: session, navigation, and the view that the address names.

import { SESSION_ENDED, Refusal, change, here, read } from "./api.js";
import { logIn, notice } from "./dialogs.js";
import { button, element, fill, part } from "./elements.js";
import { navigation, place, refreshApps } from "./navigation.js";
import { app, apps } from "./views/apps.js";
import { group, groups, topics, user, users } from "./views/audiences.js";
import { campaign } from "./views/campaign.js";
import { campaigns } from "./views/campaigns.js";
import { compose } from "./views/compose.js";
import { credentials } from "./views/credentials.js";
import { delivery } from "./views/delivery.js";
import { device, devices } from "./views/devices.js";
import { audit, nodes, settings } from "./views/operator.js";
import { overview } from "./views/overview.js";
import { proposals } from "./views/proposals.js";
import { schedules } from "./views/schedules.js";
import { upstream } from "./views/upstream.js";

/** Views of the server, which need no app. */
const SERVER_VIEWS = { overview, apps, nodes, audit, settings };
/** Views of an app; the one of a single object has the object's id behind it in the address. */
const APP_VIEWS = {
  app,
  campaigns: [campaigns, campaign],
  compose,
  deliveries: [null, delivery],
  devices: [devices, device],
  users: [users, user],
  groups: [groups, group],
  topics,
  schedules,
  proposals,
  credentials,
  upstream,
};

/** Letters of a page's title in the title of the window. */
const TITLE_MAX_CHARS = 40;

let leaving = new AbortController();
/** True once a view was shown: the next one gets the focus, and the first one leaves it at the top of the page. */
let moves = false;

function viewOf({ app: id, view, ids }) {
  if (!id) return Object.hasOwn(SERVER_VIEWS, view) ? SERVER_VIEWS[view] : null;
  if (!Object.hasOwn(APP_VIEWS, view)) return null;
  const [list, single] = [APP_VIEWS[view]].flat();
  return ids[0] ? (single ?? list) : list;
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const at = place();
  if (at.app) here.app = at.app;
  navigation(at.view);
  const title = element("h1", { tabindex: -1 });
  const content = element("div", { class: "content" });
  const header = (text) => {
    title.textContent = text;
    document.title = `${text.slice(0, TITLE_MAX_CHARS)} – Stentor`;
  };
  fill(part("view"), title, content);
  try {
    const view = viewOf(at);
    if (!view) throw new Error("There is no such page.");
    header("Loading …");
    if (moves) title.focus({ preventScroll: true });
    moves = true;
    window.scrollTo(0, 0);
    await view({ content, header, signal, ids: at.ids });
  } catch (error) {
    if (signal.aborted || (error instanceof Refusal && error.status === 401)) return;
    if (title.textContent === "Loading …") header("This page cannot be shown");
    content.append(element("p", { class: "trouble", role: "alert" }, error.message));
  }
}

function who() {
  const { by, scopes, person } = here.session;
  const words = { root: "Root key", key: `App key: ${scopes.join(", ")}`, person: person?.name }[by];
  fill(part("who"), element("span", {}, words), button("Log out", logOut));
}

async function logOut() {
  leaving.abort();
  const left = await change("DELETE", "/console/session").catch((error) => notice(error.message, true));
  if (left?.logout_url) {
    location.assign(left.logout_url);
    return;
  }
  here.session = null;
  here.app = null;
  ["view", "who", "navigation", "notice"].forEach((id) => fill(part(id)));
  await begin();
}

async function enter() {
  who();
  const named = place().app;
  here.app = named ?? here.session.app ?? here.app;
  await refreshApps();
  await show();
}

/** True if something was typed that a new view would discard. */
function isTyping() {
  const inputs = [...part("view").querySelectorAll("input, textarea")];
  return inputs.some((input) => input.value !== input.defaultValue);
}

let returns = false;

/** The session has ended while a page is open. What was typed stays if the same key returns. */
document.addEventListener(SESSION_ENDED, async () => {
  if (returns) return;
  returns = true;
  const { by, app: of } = here.session;
  const now = await logIn();
  returns = false;
  who();
  if (isTyping() && now.by === by && now.app === of) notice("Logged in again. Repeat what was refused.");
  else await enter();
});

async function begin() {
  try {
    here.session = await read("/console/session");
  } catch {
    await logIn();
  }
  await enter();
}

window.addEventListener("hashchange", show);
await begin();
