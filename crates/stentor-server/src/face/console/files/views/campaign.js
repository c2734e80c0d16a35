// One campaign: the bar that sums to the audience, the reasons, and the device behind each number.

import { change, here, may, mayRead, ofApp, read } from "../api.js";
import { bar, legend, parts, sum } from "../bar.js";
import { confirmed, notice } from "../dialogs.js";
import { badge, button, code, count, element, facts, fill, instant, link, part, section, source } from "../elements.js";
import { choice } from "../forms.js";
import { PagedTable, table } from "../lists.js";
import { poll } from "../polling.js";

const RUNNING_MS = 1_000;
const WAITING_MS = 5_000;
const PAGE_MAX_COUNT = 25;
const ENDED = ["finished", "canceled", "stopped"];

export async function campaign({ content, header, signal, ids: [id] }) {
  const ledger = await read(`/v1/campaigns/${id}`, { query: ofApp(), signal });
  const message = await read(`/v1/messages/${ledger.message}`, { query: ofApp(), signal }).catch(() => null);
  header(message?.notification?.title ?? `Campaign ${ledger.campaign}`);
  const books = element("div");
  const list = mayRead("send") && deliveries(ledger.message, signal);
  fill(
    content,
    books,
    list && section("Devices", list.filter, list.pages.place),
    message && section("Message", described(message)),
  );
  await list?.pages.show();
  let last = ledger.state;
  await poll(signal, books, async () => {
    const now = await read(`/v1/campaigns/${id}`, { query: ofApp(), signal });
    fill(books, ...shown(now, signal));
    if (last !== now.state) {
      announce(now);
      await list?.pages.restart();
    }
    last = now.state;
    // Devices may still confirm what their push service accepted.
    return now.state === "running" ? RUNNING_MS : WAITING_MS;
  });
}

/** Tells screen readers how it stands, once for each state. */
function announce(ledger) {
  const words = parts(ledger.totals).filter(({ devices }) => devices > 0);
  const text = words.map(({ state, devices }) => `${count(devices)} ${state}`).join(", ");
  part("announcement").textContent = `The campaign is ${ledger.state}: ${text}.`;
}

function shown(ledger, signal) {
  const reasons = ledger.providers.flatMap((provider) => provider.reasons);
  const total = sum(ledger.totals);
  const isWhole = total === ledger.audience && ledger.balanced;
  const devices = `${count(total)} of ${count(ledger.audience)} devices${ledger.audience_complete ? "" : " so far"}`;
  const proof = `${devices} are accounted for: the ledger is ${isWhole ? "balanced" : "not balanced"}.`;
  return [
    element("p", { class: "state" }, badge(ledger.state), actions(ledger, signal)),
    ledger.stop && element("p", { class: "trouble" }, `Stopped: ${ledger.stop.reason}. ${ledger.stop.detail}`),
    ...(ledger.waits ?? []).map(waiting),
    bar(ledger.totals),
    element("p", { class: isWhole ? "proof" : "proof trouble", id: "proof" }, proof),
    element(
      "section",
      { class: "scroll", tabindex: 0, "aria-label": "Devices by state" },
      legend(ledger.totals, sumOf(reasons)),
    ),
    facts([
      ["Campaign", code(ledger.campaign)],
      ["Audience", count(ledger.audience)],
      ["Attempts", count(ledger.attempts)],
      ["Possibly sent twice", `${count(ledger.ambiguous)} deliveries, at most ${count(ledger.duplicate_bound)}`],
      ["Ended per second", count(ledger.rate_per_second)],
      ["Due", instant(ledger.due_at)],
      ["Started", instant(ledger.started_at)],
      ["Ended", instant(ledger.ended_at)],
      ["Expires", instant(ledger.expires_at)],
    ]),
    section("Push services", providers(ledger.providers)),
  ];
}

function waiting({ reason, provider, detail, until }) {
  const where = provider ? `${provider} waits` : "It waits";
  return element(
    "p",
    { class: "waits" },
    `${where}: ${reason}. ${detail}`,
    until && element("span", {}, " It goes on at ", instant(until), "."),
  );
}

/** Adds up the counts of one reason over all push services. */
function sumOf(reasons) {
  const sums = new Map();
  for (const { state, reason, count: devices } of reasons) {
    const key = `${state} ${reason}`;
    sums.set(key, { state, reason, count: devices + (sums.get(key)?.count ?? 0) });
  }
  return [...sums.values()].sort((a, b) => b.count - a.count);
}

function providers(all) {
  const columns = [
    ["Push service", (one) => one.provider],
    ["Audience", (one) => `${count(one.audience)}${one.audience_complete ? "" : " so far"}`],
    ["Progress", (one) => bar(one.totals)],
    ["Attempts", (one) => count(one.attempts)],
    ["Stopped", (one) => (one.stop ? `${one.stop.reason}: ${one.stop.detail}` : "no")],
  ];
  return table("Push services of the campaign", columns, all, "No push service has a part of it yet.");
}

function actions(ledger, signal) {
  if (!may("send") || ENDED.includes(ledger.state)) return null;
  const act = (word, done) => async () => {
    document.activeElement?.blur();
    try {
      await change("POST", `/v1/campaigns/${ledger.campaign}/${word}`, undefined, { query: ofApp(), signal });
      notice(done);
    } catch (error) {
      notice(error.message, true);
    }
  };
  const cancel = async () => {
    const text = "Queued deliveries are canceled for good; those in flight complete.";
    if (await confirmed("Cancel the campaign?", text, "Cancel the campaign")) await act("cancel", "Canceled.")();
  };
  const pause =
    ledger.state === "paused"
      ? button("Resume", act("resume", "It goes on."))
      : button("Pause", act("pause", "It stands still."));
  return element("span", { class: "actions" }, pause, button("Cancel the campaign …", cancel));
}

/** The deliveries of the message, all or those in one state. */
function deliveries(message, signal) {
  const columns = [
    ["Device", (one) => link(`/${here.app}/deliveries/${message}/${one.device}`, one.device)],
    ["Push service", (one) => one.provider],
    ["State", (one) => badge(one.state)],
    ["Reason", (one) => one.reason],
    ["Attempt", (one) => count(one.attempt)],
    ["At", (one) => instant(one.at)],
  ];
  const words = [
    "delivered",
    "accepted",
    "rejected",
    "failed",
    "expired",
    "collapsed",
    "canceled",
    "sending",
    "queued",
  ];
  const filter = choice("State", [["", "all"], ...words], {
    onchange: () => pages.restart().catch((error) => notice(error.message, true)),
  });
  const load = async (after) => {
    const query = ofApp({ after, limit: PAGE_MAX_COUNT, state: filter.given() });
    const page = await read(`/v1/messages/${message}/deliveries`, { query, signal });
    return { entries: page.deliveries, next: page.next };
  };
  const pages = new PagedTable("Deliveries", columns, load, "No device is in this state.");
  return { filter: filter.row, pages };
}

function described(message) {
  const { notification = {}, target, data, priority, ttl_seconds: ttl, collapse_key: collapseKey, schedule } = message;
  return [
    facts([
      ["Message", code(message.id)],
      ["Target", code(JSON.stringify(target))],
      ["Title", notification.title],
      ["Body", notification.body],
      ["Image", notification.image],
      ["Priority", priority],
      ["Waits at most", `${count(ttl)} s`],
      ["Collapse key", collapseKey],
      ["Schedule", schedule && code(schedule)],
    ]),
    data && source(JSON.stringify(data, null, 2), "Data of the message"),
  ];
}
