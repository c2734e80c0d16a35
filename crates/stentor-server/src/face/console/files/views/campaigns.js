// Campaigns, newest first.

import { here, ofApp, read } from "../api.js";
import { bar } from "../bar.js";
import { badge, count, element, fill, instant, link } from "../elements.js";
import { PagedTable } from "../lists.js";
import { poll } from "../polling.js";

const PAGE_MAX_COUNT = 25;
const INTERVAL_MS = 5_000;

export async function campaigns({ content, header, signal }) {
  const columns = [
    ["Campaign", (one) => link(`/${here.app}/campaigns/${one.id}`, one.title ?? one.id)],
    ["Target", (one) => one.target ?? "cannot be read"],
    ["State", (one) => badge(one.state)],
    ["Audience", (one) => count(one.audience)],
    ["Progress", (one) => bar(one.totals)],
    ["Created", (one) => instant(one.created_at)],
  ];
  const load = async (before) => {
    const page = await read("/v1/campaigns", { query: ofApp({ before, limit: PAGE_MAX_COUNT }), signal });
    return { entries: page.campaigns, next: page.next, beside: page.damaged && damaged(page.damaged) };
  };
  const list = new PagedTable("Campaigns", columns, load, "No message was sent yet.");
  await list.show();
  header("Campaigns");
  fill(content, element("p", {}, link(`/${here.app}/compose`, "Compose a message", { class: "button" })), list.place);
  await poll(signal, list.place, async () => {
    // An older page changes little.
    if (list.isFirst()) await list.show();
    return INTERVAL_MS;
  });
}

function damaged(ids) {
  const links = ids.map((id) => element("li", {}, link(`/${here.app}/campaigns/${id}`, id)));
  return element(
    "div",
    {},
    element("p", { class: "trouble" }, "These campaigns cannot be read:"),
    element("ul", {}, links),
  );
}
