// Messages that wait for an approval of somebody else than their author.

import { change, here, may, ofApp, read } from "../api.js";
import { confirmed, notice } from "../dialogs.js";
import { button, count, element, fill, instant, source } from "../elements.js";
import { PagedTable } from "../lists.js";

const PAGE_MAX_COUNT = 25;

export async function proposals({ content, header, signal }) {
  const columns = [
    ["Message", message],
    ["Devices", (one) => count(one.device_count)],
    ["Author", author],
    ["Send at", (one) => (one.send_at ? instant(one.send_at) : "its approval")],
    ["Proposed", (one) => element("div", {}, instant(one.created_at), element("div", {}, "until ", instant(one.expires_at)))],
    ["Actions", (one) => actions(one, () => list.show())],
  ];
  const load = async (after) => {
    const page = await read("/v1/proposals", { query: ofApp({ after, limit: PAGE_MAX_COUNT }), signal });
    return { entries: page.proposals, next: page.next };
  };
  const list = new PagedTable("Messages that wait for an approval", columns, load, "No message waits for an approval.");
  await list.show();
  header("Approvals");
  fill(content, list.place);
}

const title = (one) => one.message.notification?.title ?? "without a title";
const author = (one) => one.person_name ?? one.key ?? "the root key";
/** True if the session is the author's, as far as it knows: a key does not know its own id. */
const isOwn = ({ by, person }) => by === here.session.by && by !== "key" && person === here.session.person?.subject;

function message(one) {
  const text = JSON.stringify(one.message, null, 2);
  return element(
    "details",
    {},
    element("summary", {}, title(one)),
    source(text, `Content of ${title(one)}`),
  );
}

function actions(one, reload) {
  if (!may("send")) return "–";
  const act = (method, path, done) => async () => {
    try {
      const answer = await change(method, `/v1/proposals/${one.id}${path}`, undefined, { query: ofApp() });
      notice(done);
      if (answer?.sent) location.hash = `#/${here.app}/campaigns/${answer.sent}`;
      else await reload();
    } catch (error) {
      notice(error.message, true);
    }
  };
  const approve = async () => {
    const question = `Send "${title(one)}" to ${count(one.device_count)} devices?`;
    if (await confirmed(question, "What is sent cannot be taken back.", "Approve"))
      await act("POST", "/approve", "The message is approved: it is on disk.")();
  };
  const word = isOwn(one) ? "Withdraw" : "Reject";
  return element(
    "span",
    { class: "actions" },
    !isOwn(one) && button("Approve", approve, { "aria-label": `Approve ${title(one)}` }),
    button(word, act("DELETE", "", "It is gone."), { "aria-label": `${word} ${title(one)}` }),
  );
}
