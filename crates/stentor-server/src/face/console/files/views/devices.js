// Devices: the list, the registration of one, and one with its topics and its history.

import { change, here, may, ofApp, read } from "../api.js";
import { confirmed, notice } from "../dialogs.js";
import { badge, button, code, element, facts, fill, instant, link, section } from "../elements.js";
import { choice, field, form } from "../forms.js";
import { PagedTable } from "../lists.js";

const PAGE_MAX_COUNT = 50;
const PLATFORMS = ["android", "apple", "web", "windows", "linux"];

export async function devices({ content, header, signal }) {
  const filters = {
    state: choice("State", [["", "all"], "active", "retired", "unlisted"]),
    provider: field("Push service", { placeholder: "fcm", autocomplete: "off", spellcheck: "false" }),
    user: field("User", { autocomplete: "off" }),
    tag: field("Tag", { autocomplete: "off" }),
  };
  const columns = [
    ["Device", (one) => link(`/${here.app}/devices/${one.id}`, one.id)],
    ["Platform", (one) => one.platform],
    ["Push service", (one) => one.provider],
    ["Token", (one) => code(one.token_hint)],
    ["User", (one) => one.user && link(`/${here.app}/users/${encodeURIComponent(one.user)}`, one.user)],
    ["State", (one) => badge(one.state)],
    ["Registered", (one) => instant(one.registered_at)],
  ];
  const load = async (after) => {
    const given = Object.entries(filters).map(([name, filter]) => [name, filter.given()]);
    const page = await read("/v1/devices", {
      query: ofApp({ ...Object.fromEntries(given), after, limit: PAGE_MAX_COUNT }),
      signal,
    });
    return { entries: page.devices, next: page.next };
  };
  const list = new PagedTable("Devices", columns, load, "No device.");
  await list.show();
  header("Devices");
  const search = form("Show", Object.values(filters), () => list.restart(), { isInline: true });
  fill(content, search, list.place, may("register") && section("Register a device", registration(list)));
}

function registration(list) {
  const platform = choice("Platform", PLATFORMS);
  const provider = field(
    "Push service",
    { autocomplete: "off", spellcheck: "false" },
    "The platform's usual one when empty.",
  );
  const token = field(
    "Token",
    { required: true, maxlength: 4096, autocomplete: "off", spellcheck: "false" },
    "The address of the device at its push service.",
  );
  const user = field("User", { autocomplete: "off" });
  const topics = field("Topics", { autocomplete: "off" }, "Names with spaces between.");
  return form("Register", [platform, provider, token, user, topics], async () => {
    const names = topics.value().split(/\s+/).filter(Boolean);
    const body = {
      platform: platform.value(),
      provider: provider.given(),
      token: token.value().trim(),
      user: user.given(),
      topics: names,
    };
    const { id, created } = await change("POST", "/v1/devices", body, { query: ofApp() });
    notice(created ? `${id} is registered.` : `${id} was registered already.`);
    token.input.value = "";
    await list.restart();
  });
}

export async function device({ content, header, signal, ids: [id] }) {
  const [one, { topics }] = await Promise.all([
    read(`/v1/devices/${id}`, { query: ofApp(), signal }),
    read(`/v1/devices/${id}/topics`, { query: ofApp(), signal }),
  ]);
  header(`Device ${one.id}`);
  const texts = Object.entries(one).filter(([name]) => !SHOWN.includes(name));
  const about = facts([
    ["State", badge(one.state)],
    ["Retired", one.retired && element("span", {}, `${one.retired.reason}, `, instant(one.retired.at))],
    ["Platform", one.platform],
    ["Push service", one.provider],
    ["Token", code(one.token_hint)],
    ["User", one.user && link(`/${here.app}/users/${encodeURIComponent(one.user)}`, one.user)],
    ["Tags", one.tags.join(", ")],
    ["Topics", topics.join(", ")],
    ["Registered", instant(one.registered_at)],
    ["Token since", instant(one.token_since)],
    ...texts.map(([name, value]) => [name.replaceAll("_", " "), String(value)]),
  ]);
  const history = historyOf(id, signal);
  await history.show();
  fill(
    content,
    about,
    may("register") &&
      element(
        "p",
        {},
        button("Delete the device …", () => remove(id)),
      ),
    section("History", history.place),
  );
}

/** Facts with a line of their own; the others are texts that the app states. */
const SHOWN = [
  "id",
  "state",
  "retired",
  "platform",
  "provider",
  "token_hint",
  "user",
  "tags",
  "registered_at",
  "token_since",
  "keys",
];

async function remove(id) {
  if (!(await confirmed("Delete the device?", "Its subscriptions and memberships go with it.", "Delete"))) return;
  try {
    await change("DELETE", `/v1/devices/${id}`, undefined, { query: ofApp() });
    notice(`${id} is deleted.`);
    location.hash = `#/${here.app}/devices`;
  } catch (error) {
    notice(error.message, true);
  }
}

function historyOf(id, signal) {
  const columns = [
    ["Message", (one) => link(`/${here.app}/deliveries/${one.message}/${id}`, one.message)],
    ["Attempt", (one) => String(one.attempt)],
    ["State", (one) => badge(one.state)],
    ["Reason", (one) => one.reason],
    ["Push service", (one) => one.provider],
    ["At", (one) => instant(one.at)],
  ];
  const load = async (before) => {
    const page = await read(`/v1/devices/${id}/deliveries`, {
      query: ofApp({ before, limit: PAGE_MAX_COUNT }),
      signal,
    });
    return { entries: page.deliveries, next: page.next };
  };
  return new PagedTable("History of the device", columns, load, "No message was for this device.");
}
