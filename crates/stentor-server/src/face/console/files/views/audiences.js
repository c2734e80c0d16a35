// Users, groups and topics.

import { here, ofApp, read } from "../api.js";
import { code, count, element, facts, fill, instant, link, section } from "../elements.js";
import { field, form } from "../forms.js";
import { PagedTable, table } from "../lists.js";

const PAGE_MAX_COUNT = 50;

/** A list by name, with a way to one of them. */
async function listed({ content, header, signal }, { title, path, entries, columns, find }) {
  const load = async (after) => {
    const page = await read(path, { query: ofApp({ after, limit: PAGE_MAX_COUNT }), signal });
    return { entries: entries(page), next: page.next };
  };
  const list = new PagedTable(title, columns, load, `No ${title.toLowerCase()}.`);
  await list.show();
  header(title);
  fill(content, find, list.place);
}

const deviceList = (caption, ids) =>
  table(caption, [["Device", (id) => link(`/${here.app}/devices/${id}`, id)]], ids, "No device.");

export async function users(view) {
  const id = field("Id of the user", { required: true, autocomplete: "off" });
  const find = form(
    "Show user",
    [id],
    async () => (location.hash = `#/${here.app}/users/${encodeURIComponent(id.value())}`),
    { isInline: true },
  );
  await listed(view, {
    title: "Users",
    path: "/v1/users",
    entries: (page) => page.users,
    columns: [
      ["User", (one) => link(`/${here.app}/users/${encodeURIComponent(one.external_id)}`, one.external_id)],
      ["Created", (one) => instant(one.created_at)],
    ],
    find,
  });
}

export async function user({ content, header, signal, ids: [id] }) {
  const one = await read(`/v1/users/${encodeURIComponent(id)}`, { query: ofApp(), signal });
  header(`User ${one.external_id}`);
  fill(
    content,
    facts([
      ["Id", code(one.external_id)],
      ["Created", instant(one.created_at)],
    ]),
    section("Devices", deviceList("Devices of the user", one.devices)),
  );
}

export async function groups(view) {
  await listed(view, {
    title: "Groups",
    path: "/v1/groups",
    entries: (page) => page.groups,
    columns: [
      ["Group", (one) => link(`/${here.app}/groups/${encodeURIComponent(one.name)}`, one.name)],
      ["Members", (one) => count(one.member_count)],
      ["Created", (one) => instant(one.created_at)],
    ],
  });
}

export async function group({ content, header, signal, ids: [name] }) {
  const path = `/v1/groups/${encodeURIComponent(name)}`;
  const one = await read(path, { query: ofApp(), signal });
  const columns = [
    [
      "Member",
      ({ device, user: id }) =>
        device
          ? link(`/${here.app}/devices/${device}`, device)
          : link(`/${here.app}/users/${encodeURIComponent(id)}`, id),
    ],
  ];
  const load = async (after) => {
    const page = await read(`${path}/members`, { query: ofApp({ after, limit: PAGE_MAX_COUNT }), signal });
    const members = [...page.users.map((id) => ({ user: id })), ...page.devices.map((device) => ({ device }))];
    return { entries: members, next: page.next };
  };
  const list = new PagedTable("Members", columns, load, "No member.");
  await list.show();
  header(`Group ${one.name}`);
  fill(
    content,
    facts([
      ["Members", count(one.member_count)],
      ["Created", instant(one.created_at)],
    ]),
    section("Members", list.place),
  );
}

export async function topics(view) {
  const compose = (name) =>
    link(`/${here.app}/compose/${encodeURIComponent(name)}`, "Compose", { "aria-label": `Compose to ${name}` });
  await listed(view, {
    title: "Topics",
    path: "/v1/topics",
    entries: (page) => page.topics,
    columns: [
      ["Topic", (one) => element("span", {}, one.name)],
      ["Devices", (one) => count(one.device_count)],
      ["Actions", (one) => compose(one.name)],
    ],
  });
}
