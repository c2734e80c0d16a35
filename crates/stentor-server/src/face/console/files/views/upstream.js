// Messages from devices: those that wait, dead letters, and the webhook to which they are posted.

import { Refusal, change, here, may, ofApp, read } from "../api.js";
import { confirmed, notice, showSecret } from "../dialogs.js";
import { button, code, count, element, facts, fill, instant, link, section } from "../elements.js";
import { field, form } from "../forms.js";
import { PagedTable } from "../lists.js";

const PAGE_MAX_COUNT = 25;

export async function upstream({ content, header, signal }) {
  const waiting = listOf("Waiting messages", "/v1/upstream/messages", (page) => page.messages, [], signal);
  const reason = ["Reason", (one) => one.reason];
  const dead = listOf(
    "Dead letters",
    "/v1/upstream/dead-letters",
    (page) => page.dead_letters,
    [reason, ["Actions", (one) => retry(one, () => dead.restart())]],
    signal,
  );
  await Promise.all([waiting.show(), dead.show()]);
  header("Upstream");
  const hook = may("admin") && element("div");
  fill(
    content,
    section("Waiting", waiting.place),
    section("Dead letters", dead.place),
    hook && section("Webhook", hook),
  );
  if (hook) await webhook(hook, signal);
}

function listOf(caption, path, entries, more, signal) {
  const columns = [
    ["Message", (one) => code(one.id)],
    ["Device", (one) => link(`/${here.app}/devices/${one.device}`, one.device)],
    ["Data", (one) => code(JSON.stringify(one.data))],
    ["Attempts", (one) => count(one.attempts)],
    ["Sent", (one) => instant(one.created_at)],
    ...more,
  ];
  const load = async (after) => {
    const page = await read(path, { query: ofApp({ after, limit: PAGE_MAX_COUNT }), signal });
    return { entries: entries(page), next: page.next };
  };
  return new PagedTable(caption, columns, load);
}

function retry(one, reload) {
  if (!may("send")) return "–";
  const act = async () => {
    try {
      await change("POST", "/v1/upstream/dead-letters/retry", { ids: [one.id] }, { query: ofApp() });
      notice("It waits again.");
      await reload();
    } catch (error) {
      notice(error.message, true);
    }
  };
  return button("Retry", act, { "aria-label": `Retry ${one.id}` });
}

async function webhook(place, signal) {
  const path = `/v1/apps/${here.app}/upstream-webhook`;
  const set = await read(path, { signal }).catch((error) => {
    if (error instanceof Refusal && error.status === 404) return null;
    throw error;
  });
  const again = () => webhook(place, signal);
  const remove = async () => {
    if (!(await confirmed("Delete the webhook?", "Messages wait for another consumer.", "Delete"))) return;
    await change("DELETE", path).then(again, (error) => notice(error.message, true));
  };
  const url = field("Address", { type: "url", required: true, autocomplete: "off" });
  const save = form(set ? "Replace" : "Set", [url], async () => {
    const made = await change("PUT", path, { url: url.value() });
    if (made.secret)
      await showSecret("The secret of the webhook", "It signs the requests, and is shown this once.", made.secret);
    await again();
  });
  const shown = set
    ? [
        facts([
          ["Address", set.url],
          ["Changed", instant(set.updated_at)],
        ]),
        element("p", {}, button("Delete …", remove)),
      ]
    : [element("p", { class: "empty" }, "There is no webhook.")];
  fill(place, ...shown, save);
}
