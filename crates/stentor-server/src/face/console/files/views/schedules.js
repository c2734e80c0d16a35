// Schedules with their next occurrences.

import { change, here, may, ofApp, read } from "../api.js";
import { confirmed, notice } from "../dialogs.js";
import { badge, button, code, element, fill, instant, link } from "../elements.js";
import { PagedTable } from "../lists.js";

const PAGE_MAX_COUNT = 25;

export async function schedules({ content, header, signal }) {
  const columns = [
    ["Schedule", (one) => one.name ?? one.id],
    ["Pattern", (one) => element("span", {}, code(one.cron), ` ${one.time_zone}`)],
    ["Message", (one) => one.message.notification?.title ?? "without a title"],
    ["State", (one) => badge(one.state)],
    ["Next", (one) => upcoming(one.upcoming)],
    ["Last", (one) => instant(one.last_fired)],
    ["Actions", (one) => actions(one, () => list.show())],
  ];
  const load = async (after) => {
    const page = await read("/v1/schedules", { query: ofApp({ after, limit: PAGE_MAX_COUNT }), signal });
    return { entries: page.schedules, next: page.next };
  };
  const list = new PagedTable("Schedules", columns, load, "There is no schedule.");
  await list.show();
  header("Schedules");
  fill(content, element("p", {}, link(`/${here.app}/compose`, "Compose one", { class: "button" })), list.place);
}

function upcoming(instants) {
  if (instants.length === 0) return "–";
  const [first, ...rest] = instants;
  const more =
    rest.length > 0 &&
    element(
      "details",
      {},
      element("summary", {}, `and ${rest.length} more`),
      rest.map((one) => element("div", {}, instant(one))),
    );
  return element("div", {}, instant(first), more);
}

function actions(one, reload) {
  if (!may("send")) return "–";
  const name = one.name ?? one.id;
  const act = (method, path, done) => async () => {
    try {
      await change(method, `/v1/schedules/${one.id}${path}`, undefined, { query: ofApp() });
      notice(done);
      await reload();
    } catch (error) {
      notice(error.message, true);
    }
  };
  const remove = async () => {
    if (await confirmed(`Delete ${name}?`, "Messages already sent stay.", "Delete"))
      await act("DELETE", "", "Deleted.")();
  };
  const pause =
    one.state === "active" && button("Pause", act("POST", "/pause", "Paused."), { "aria-label": `Pause ${name}` });
  const resume =
    one.state === "paused" && button("Resume", act("POST", "/resume", "Active."), { "aria-label": `Resume ${name}` });
  return element(
    "span",
    { class: "actions" },
    pause,
    resume,
    button("Delete", remove, { "aria-label": `Delete ${name}` }),
  );
}
