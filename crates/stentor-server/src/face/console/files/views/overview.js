// What runs, what stands still and why, and what an operator should do about it.

import { here, isRoot, may, mayRead, ofApp, read, readiness } from "../api.js";
import { bar } from "../bar.js";
import { badge, count, duration, element, facts, fill, instant, link, section } from "../elements.js";
import { table } from "../lists.js";
import { poll } from "../polling.js";

const INTERVAL_MS = 5_000;
const CAMPAIGNS_MAX_COUNT = 20;
/** Work that waits longer is worth a look. */
const OLD_SECONDS = 300;
const LIVE = ["running", "paused", "scheduled"];

export async function overview({ content, header, signal }) {
  header("Overview");
  await poll(signal, content, async () => {
    const ready = await readiness(signal);
    // Shown first: the reads below are repeated until the server answers.
    const troubles = unready(ready).map((text) => element("li", {}, text));
    if (troubles.length > 0) fill(content, section("Advice", element("ul", { class: "advice" }, troubles)));
    const [status, nodes, work, credentials] = await Promise.all([
      isRoot() ? read("/v1/status", { signal }) : null,
      isRoot() ? read("/v1/nodes", { signal }) : null,
      here.app && mayRead("send") ? read("/v1/campaigns", { query: ofApp({ limit: CAMPAIGNS_MAX_COUNT }), signal }) : null,
      here.app && may("admin") ? read(`/v1/apps/${here.app}/credentials`, { signal }) : null,
    ]);
    fill(content, advice(ready, status, nodes, credentials), work && running(work.campaigns), status && server(status));
    return INTERVAL_MS;
  });
}

/** What needs somebody's attention, worst first. */
function advice(ready, status, nodes, credentials) {
  const found = unready(ready).map((text) => element("li", {}, text));
  for (const node of nodes?.nodes ?? []) {
    for (const lane of node.parked) found.push(parkedLane(lane, node.host));
  }
  for (const one of credentials?.credentials ?? []) {
    const isListed = (nodes?.nodes ?? []).some((node) =>
      node.parked.some((lane) => lane.app === here.app && lane.provider === one.provider),
    );
    if (one.state === "parked" && !isListed) found.push(parkedLane({ ...one, app: here.app }));
  }
  if (credentials && credentials.credentials.length === 0) {
    found.push(
      element("li", {}, "This app has no credential: it cannot send. ", link(`/${here.app}/credentials`, "Set one")),
    );
  }
  if (isRoot() && !here.app)
    found.push(element("li", {}, "There is no app yet. ", link("/apps", "Create the first one")));
  if (status?.damaged_chunks > 0)
    found.push(
      element(
        "li",
        {},
        `${count(status.damaged_chunks)} damaged chunks are set aside: restore a backup, or cancel their campaigns.`,
      ),
    );
  if (status?.damaged_rows > 0)
    found.push(element("li", {}, `${count(status.damaged_rows)} rows cannot be read and are left out of lists.`));
  const list =
    found.length > 0
      ? element("ul", { class: "advice" }, found)
      : element("p", { class: "fine" }, "Nothing stands still.");
  return section("Advice", list);
}

/** The parts of the server that do not answer, and work that waits. */
function unready(ready) {
  if (ready === null) return [];
  const parts = ["store", "queue", "receipts", "pipeline"].filter((part) => ready[part] === "unavailable");
  const found = parts.map((part) => `The ${part} is unavailable: the log of the server names the cause.`);
  if (ready.oldest_ready_seconds > OLD_SECONDS)
    found.push(`Work is due for ${duration(ready.oldest_ready_seconds)}: see the campaigns and the parked lanes.`);
  return found;
}

function parkedLane({ app, provider, reason, detail, until }, host) {
  const where = host ? ` at ${host}` : "";
  const when = until
    ? element("span", {}, " It goes on at ", instant(until), ".")
    : " It waits for a new credential or a passed probe.";
  return element(
    "li",
    {},
    badge("parked"),
    ` ${provider}${where}: ${reason}. ${detail ?? ""}`,
    when,
    " ",
    link(`/${app}/credentials`, "Credentials"),
  );
}

function running(campaigns) {
  const live = campaigns.filter(({ state }) => LIVE.includes(state));
  const columns = [
    ["Campaign", (one) => link(`/${here.app}/campaigns/${one.id}`, one.title ?? one.id)],
    ["State", (one) => badge(one.state)],
    ["Audience", (one) => count(one.audience)],
    ["Progress", (one) => bar(one.totals)],
  ];
  return section(
    "Running work",
    table("Running campaigns", columns, live, "No campaign is running, paused or scheduled among the last 20."),
  );
}

const isUsed = (provider) => provider.attempts + provider.connections + provider.parked.length > 0;

function server(status) {
  const providers = [
    ["Push service", (one) => one.provider],
    ["Attempts", (one) => count(one.attempts)],
    ["In flight", (one) => `${count(one.inflight)} of ${count(one.inflight_limit)}`],
    ["Fastest answer", (one) => `${count(one.latency_floor_ms)} ms`],
    ["Connections", (one) => count(one.connections)],
    ["Parked lanes", (one) => count(one.parked.length)],
  ];
  const lanes = [
    ["Push service", (one) => one.provider],
    ["App", (one) => link(`/${one.app}/campaigns`, one.app)],
    ["Class", (one) => one.class],
    ["Ready chunks", (one) => count(one.ready)],
    ["Later", (one) => count(one.delayed)],
    ["Leased", (one) => count(one.leased)],
    ["Oldest due", (one) => instant(one.oldest_due)],
  ];
  const lines = facts([
    ["Up for", duration(status.uptime_seconds)],
    [
      "Unsettled deliveries",
      `${count(status.unsettled_deliveries)} of ${count(status.limits.max_unsettled_deliveries)}`,
    ],
    ["Producers", count(status.producers)],
    ["Recovered at the start", `${count(status.recovery.deliveries)} deliveries`],
  ]);
  return section(
    "This server",
    lines,
    element("h3", {}, "Push services"),
    table("Push services", providers, status.providers.filter(isUsed), "No push service is in use."),
    element("h3", {}, "Queue"),
    table("Lanes of the queue", lanes, status.queue, "The queue is empty."),
  );
}
