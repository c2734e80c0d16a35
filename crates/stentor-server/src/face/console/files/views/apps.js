// Apps, and the keys of one.

import { change, here, isRoot, read } from "../api.js";
import { confirmed, notice, showSecret } from "../dialogs.js";
import { button, code, element, fill, instant, link, section } from "../elements.js";
import { choice, field, form } from "../forms.js";
import { table } from "../lists.js";
import { refreshApps } from "../navigation.js";

const SCOPES = [
  ["send", "send: messages, campaigns, schedules"],
  ["register", "register: devices, users, groups, topics"],
  ["admin", "admin: everything in the app"],
  ["join", "join: devices register themselves; may be shipped"],
];

export async function apps({ content, header, signal }) {
  const { apps: all } = await read("/v1/apps", { signal });
  header("Apps");
  const columns = [
    ["Name", (one) => link(`/${one.id}/campaigns`, one.name)],
    ["Id", (one) => code(one.id)],
    ["Created", (one) => instant(one.created_at)],
  ];
  const list = () => table("Apps", columns, all, "There is no app yet.");
  const place = element("div", {}, list());
  fill(content, place);
  if (!isRoot()) return;
  const name = field("Name", { required: true, maxlength: 100, autocomplete: "off" });
  const create = form("Create app", [name], async () => {
    const made = await change("POST", "/v1/apps", { name: name.value() });
    here.app = made.id;
    await refreshApps();
    notice(`${made.name} was created. Now set a credential.`);
    location.hash = `#/${made.id}/credentials`;
  });
  content.append(section("New app", create));
}

/** The keys of an app, and its end. */
export async function app({ content, header, signal }) {
  const [one, { keys }] = await Promise.all([
    read(`/v1/apps/${here.app}`, { signal }),
    read(`/v1/apps/${here.app}/keys`, { signal }),
  ]);
  header(`Keys of ${one.name}`);
  const reload = async () => fill(content, ...(await again()));
  const remove = (key) => async () => {
    const text = "Programs with this key are refused from now on, and sessions of the console end with it.";
    if (!(await confirmed(`Delete the key ${key.name}?`, text, "Delete"))) return;
    await change("DELETE", `/v1/apps/${here.app}/keys/${key.id}`).then(reload, (error) => notice(error.message, true));
  };
  const columns = [
    ["Name", (key) => key.name],
    ["Id", (key) => code(key.id)],
    ["Scopes", (key) => key.scopes.join(", ")],
    ["Created", (key) => instant(key.created_at)],
    ["Actions", (key) => button("Delete", remove(key), { "aria-label": `Delete the key ${key.name}` })],
  ];
  const again = async () => {
    const { keys: now } = await read(`/v1/apps/${here.app}/keys`, { signal });
    return [table("Keys", columns, now), ...forms];
  };
  const forms = [section("New key", keyForm(reload)), isRoot() && section("End of the app", removal(one))].filter(
    Boolean,
  );
  fill(content, table("Keys", columns, keys), ...forms);
}

function keyForm(reload) {
  const name = field("Name", { required: true, maxlength: 100, autocomplete: "off" });
  const scope = choice("Scope", SCOPES);
  return form("Create key", [name, scope], async () => {
    const made = await change("POST", `/v1/apps/${here.app}/keys`, { name: name.value(), scopes: [scope.value()] });
    await showSecret(`The key ${made.name}`, "The server shows it this once and keeps a hash only.", made.secret);
    await reload();
  });
}

function removal(one) {
  return form("Delete the app", [element("p", {}, "Deletes its devices, messages, campaigns and keys.")], async () => {
    if (!(await confirmed(`Delete ${one.name}?`, "This cannot be undone.", "Delete everything", one.id))) return;
    await change("DELETE", `/v1/apps/${one.id}`);
    here.app = null;
    await refreshApps();
    location.hash = "#/apps";
  });
}
