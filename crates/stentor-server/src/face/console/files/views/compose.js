// A message: written, counted, tried on one device, and sent, once or by a schedule.

import { change, here, idempotencyKey, ofApp } from "../api.js";
import { confirmed, notice } from "../dialogs.js";
import { button, count, element, facts, fill, section, source } from "../elements.js";
import { area, choice, field, form } from "../forms.js";
import { table } from "../lists.js";

/** Kinds of targets: whether one has a value, and what that is. */
const TARGETS = {
  topic: "Name of the topic",
  user: "Id of the user",
  group: "Name of the group",
  device: "Id of the device",
  condition: "Condition over topics",
  everyone: null,
};

export function compose({ content, header, ids: [topic] }) {
  header("Compose a message");
  const fields = fieldsOf(topic);
  const result = element("div", { id: "checked", role: "status" });
  const check = async () => fill(result, ...checked(await dryRun(fields)));
  const attempt = (act) => async () => {
    try {
      await act();
    } catch (error) {
      fill(result, element("p", { class: "trouble" }, error.message));
    }
  };
  const test = field(
    "Test device",
    { autocomplete: "off", spellcheck: "false" },
    "Id of one device that gets the message now, whatever the target.",
  );
  const beside = [
    button("Count and preview", attempt(check)),
    button(
      "Send a test",
      attempt(() => sendTest(fields, test.value().trim())),
    ),
  ];
  const rows = [
    group("Target", [fields.kind, fields.value]),
    group("Notification", [fields.title, fields.body, fields.image]),
    details("Data and delivery", [
      fields.data,
      fields.priority,
      fields.ttl,
      fields.collapseKey,
      fields.sendAt,
      fields.more,
    ]),
    details("Repeat by a schedule", [fields.name, fields.cron, fields.timeZone]),
    test,
  ];
  fill(
    content,
    form("Send …", rows, () => (fields.cron.given() ? repeat(fields) : send(fields)), { beside }),
    result,
  );
}

const group = (title, fields) =>
  element(
    "fieldset",
    {},
    element("legend", {}, title),
    fields.map((one) => one.row),
  );
const details = (title, fields) =>
  element(
    "details",
    {},
    element("summary", {}, title),
    fields.map((one) => one.row),
  );

function fieldsOf(topic) {
  const value = field(TARGETS.topic, { autocomplete: "off", spellcheck: "false", required: true });
  const kind = choice("Kind", Object.keys(TARGETS), { onchange: () => adapt(kind.value(), value) });
  if (topic) value.input.value = topic;
  return {
    kind,
    value,
    title: field("Title", { autocomplete: "off" }),
    body: area("Body", { rows: 3 }),
    image: field("Image", { type: "url", autocomplete: "off" }, "Address of an image."),
    data: area("Data", { spellcheck: "false" }, "One value a line: name=value."),
    priority: choice("Priority", ["high", "normal"]),
    ttl: field("Waits at most", { type: "number", min: 0 }, "Seconds; four weeks when empty, and 0 for one attempt."),
    collapseKey: field(
      "Collapse key",
      { autocomplete: "off" },
      "A newer message with the same key replaces one that still waits.",
    ),
    sendAt: field("Send at", { type: "datetime-local" }, "In your time zone; now when empty."),
    more: area(
      "Fields for single push services",
      { spellcheck: "false" },
      'A JSON object, such as {"apns": {"badge": 1}}.',
    ),
    name: field("Name of the schedule", { autocomplete: "off" }),
    cron: field(
      "Cron pattern",
      { autocomplete: "off", spellcheck: "false" },
      "Minute, hour, day of month, month, day of week, such as 0 9 * * *. Empty: the message is sent once.",
    ),
    timeZone: field("Time zone", { autocomplete: "off", value: Intl.DateTimeFormat().resolvedOptions().timeZone }),
  };
}

/** Adapts the field of the value to the kind of target. */
function adapt(kind, value) {
  const label = TARGETS[kind];
  value.row.hidden = label === null;
  value.input.required = label !== null;
  value.row.querySelector("label").firstChild.textContent = label ?? "";
}

/** Returns the message as the API wants it. */
function messageOf(fields) {
  const target =
    fields.kind.value() === "everyone" ? "everyone" : { [fields.kind.value()]: fields.value.value().trim() };
  const notification = { title: fields.title.given(), body: fields.body.given(), image: fields.image.given() };
  const isShown = Object.values(notification).some((text) => text !== undefined);
  const message = {
    target,
    notification: isShown ? notification : undefined,
    data: dataOf(fields.data.value()),
    priority: fields.priority.value(),
    ttl_seconds: fields.ttl.given() && Number(fields.ttl.value()),
    collapse_key: fields.collapseKey.given(),
    send_at: fields.sendAt.given() && new Date(fields.sendAt.value()).toISOString(),
  };
  const more = fields.more.given();
  return more ? { ...message, ...parsed(more) } : message;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`Fields for single push services: ${error.message}`);
  }
}

function dataOf(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const pairs = lines.map((line) => {
    const [name, ...value] = line.split("=");
    if (value.length === 0) throw new Error(`Data: "${line}" has no "="`);
    return [name.trim(), value.join("=")];
  });
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined;
}

const post = (path, body, key) =>
  change("POST", path, body, { query: ofApp(), headers: key ? { "Idempotency-Key": key } : {} });

const dryRun = (fields) => post("/v1/messages", { ...messageOf(fields), send_at: undefined, dry_run: true });

/** The audience by push service, and the request that one device of each would cause. */
function checked(result) {
  const { total, providers } = result.audience;
  const columns = [
    ["Push service", ([provider]) => provider],
    ["Devices", ([, devices]) => count(devices)],
    [
      "Payload",
      ([provider]) => (result.payload_bytes[provider] ? `${count(result.payload_bytes[provider])} bytes` : "–"),
    ],
  ];
  const previews = result.requests.map(({ provider, url, headers, body }) =>
    element(
      "details",
      {},
      element("summary", {}, `Request to ${provider}`),
      facts([["Address", url], ...Object.entries(headers)]),
      source(readable(body), `Body for ${provider}`),
    ),
  );
  return [
    section(
      "Dry run",
      element(
        "p",
        { id: "audience" },
        `The message would go to ${count(total)} ${total === 1 ? "device" : "devices"}. Nothing was sent.`,
      ),
      table("Audience by push service", columns, Object.entries(providers), "Nobody gets it."),
      previews,
    ),
  ];
}

function readable(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

/** The key of the last request: the same message again is the same request, unless it was accepted. */
let last = { text: "", key: "" };

function keyOf(message) {
  const text = JSON.stringify(message);
  if (last.text !== text) last = { text, key: idempotencyKey() };
  return last.key;
}

async function sendTest(fields, device) {
  if (!device) throw new Error("Name a test device.");
  const sent = await post(
    "/v1/messages",
    { ...messageOf(fields), target: { device }, send_at: undefined },
    idempotencyKey(),
  );
  notice("The test is sent.");
  location.hash = `#/${here.app}/deliveries/${sent.id}/${device}`;
}

async function send(fields) {
  const message = messageOf(fields);
  const { audience } = await dryRun(fields);
  if (!(await isMeant(audience.total))) return;
  const sent = await post("/v1/messages", message, keyOf(message)).catch((error) => {
    if (error.code !== "approval_required") throw error;
    return propose(message, error.message);
  });
  if (!sent) return;
  last = { text: "", key: "" };
  notice(`${sent.id} is accepted: it is on disk.`);
  location.hash = `#/${here.app}/campaigns/${sent.campaign}`;
}

/** Offers to propose a message that somebody else has to approve. */
async function propose(message, why) {
  if (!(await confirmed("Propose the message?", why, "Propose"))) return;
  await post("/v1/proposals", { message });
  notice("The message is proposed. Somebody else can approve it within three days.");
  location.hash = `#/${here.app}/proposals`;
}

/** Asks whether so many devices are meant, if there are more than the operator allows without a question. */
async function isMeant(devices) {
  if (devices <= here.session.unconfirmed_devices_max_count) return true;
  return confirmed(`Send to ${count(devices)} devices?`, "What is sent cannot be taken back.", "Send", String(devices));
}

async function repeat(fields) {
  const { audience } = await dryRun(fields);
  if (!(await isMeant(audience.total))) return;
  const { send_at: _, ...message } = messageOf(fields);
  const schedule = {
    name: fields.name.given(),
    cron: fields.cron.value().trim(),
    time_zone: fields.timeZone.value().trim(),
    message,
  };
  await post("/v1/schedules", schedule, keyOf(schedule));
  last = { text: "", key: "" };
  notice("The schedule is active.");
  location.hash = `#/${here.app}/schedules`;
}
