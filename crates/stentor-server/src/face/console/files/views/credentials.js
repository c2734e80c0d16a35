// Credentials of an app and their problems, and a form for each push service that the API's own description provides.

import { change, here, read } from "../api.js";
import { confirmed, notice } from "../dialogs.js";
import { badge, button, count, element, facts, fill, instant, section } from "../elements.js";
import { area, choice, field, form } from "../forms.js";

const DESCRIPTION = "/openapi.json";
const PATH = /^\/v1\/apps\/\{app\}\/credentials\/([a-z_]+)$/;
/** Texts of several lines. */
const LONG = ["Pem"];

export async function credentials({ content, header, signal }) {
  const place = element("div");
  const reload = async () => fill(place, ...(await shown(signal, reload)));
  await reload();
  header("Credentials");
  const set = element("div");
  const start = button("Set a credential …", async () => {
    fill(set, element("p", {}, "Loading …"));
    fill(set, setting(await read(DESCRIPTION, { signal }), reload));
    set.querySelector("select").focus();
  });
  fill(content, place, section("Set a credential", element("p", {}, start), set));
}

async function shown(signal, reload) {
  const { credentials: all } = await read(`/v1/apps/${here.app}/credentials`, { signal });
  if (all.length === 0) return [element("p", { class: "empty" }, "This app has no credential: it cannot send.")];
  return all.map((one) => credential(one, reload));
}

function credential(one, reload) {
  const { quota_per_minute: quota, endpoint, ...names } = one.summary;
  const path = `/v1/apps/${here.app}/credentials/${one.provider}`;
  const result = element("p", { role: "status" });
  const check = async () => {
    fill(result, document.createTextNode("Checking …"));
    try {
      const { works, cause } = await change("POST", `${path}/check`);
      result.classList.toggle("trouble", !works);
      result.textContent = works
        ? "It works: the push service answers."
        : `It does not work: ${cause ?? "without a cause"}`;
    } catch (error) {
      result.textContent = error.message;
    }
  };
  const remove = async () => {
    const text = "Queued messages wait for a new credential.";
    if (!(await confirmed(`Delete the credential for ${one.provider}?`, text, "Delete"))) return;
    await change("DELETE", path).then(reload, (error) => notice(error.message, true));
  };
  const problem = one.state === "parked" && element("p", { class: "trouble" }, `${one.reason}. ${one.detail ?? ""}`);
  return section(
    one.provider,
    element("p", { class: "state" }, badge(one.state)),
    problem,
    facts([
      ...Object.entries(names).map(([name, value]) => [name.replaceAll("_", " "), value]),
      ["Endpoint", endpoint],
      ["Quota", quota ? `${count(quota)} a minute` : "as the push service limits"],
      ["Now", one.quota && `${count(one.quota.per_minute_now)} a minute, ${count(one.quota.tokens)} at once`],
      ["Changed", instant(one.updated_at)],
    ]),
    (one.push_services ?? []).map(pushService),
    element(
      "p",
      { class: "actions" },
      button("Check", check, { "aria-label": `Check ${one.provider}` }),
      button("Delete …", remove, { "aria-label": `Delete ${one.provider}` }),
    ),
    result,
  );
}

function pushService({ origin, per_minute: limit, reason, backlog_seconds: seconds }) {
  const words = [
    limit && `${count(limit)} a minute`,
    reason && `rests: ${reason}`,
    seconds > 0 && `${Math.ceil(seconds)} s of work wait`,
  ];
  return element("p", { class: "waits" }, `${origin}: ${words.filter(Boolean).join(", ") || "takes messages"}.`);
}

/** The form of the chosen push service. */
function setting(description, reload) {
  const paths = Object.keys(description.paths).map((path) => PATH.exec(path)?.[1]);
  const providers = paths.filter(Boolean).sort();
  const place = element("div");
  const adapt = () => fill(place, formOf(description, provider.value(), reload));
  const provider = choice("Push service", providers, { onchange: adapt });
  provider.input.value = "fcm";
  adapt();
  return element("div", {}, provider.row, place);
}

function formOf(description, provider, reload) {
  const path = `/v1/apps/{app}/credentials/${provider}`;
  const schema = resolved(description, description.paths[path].put.requestBody.content["application/json"].schema);
  const required = schema.required ?? [];
  const all = Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    isRequired: required.includes(name),
    ...inputOf(description, name, property, required.includes(name)),
  }));
  const usual = all.filter((one) => one.isRequired).map((one) => one.input);
  const rest = all.filter((one) => !one.isRequired).map((one) => one.input.row);
  const more = rest.length > 0 && element("details", {}, element("summary", {}, "More settings"), rest);
  return form("Save", [...usual, more].filter(Boolean), async () => {
    const given = all.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined);
    await change("PUT", `/v1/apps/${here.app}/credentials/${provider}`, Object.fromEntries(given));
    notice(`The credential for ${provider} is saved.`);
    await reload();
  });
}

/** Follows references, and leaves out the alternative `null`. */
function resolved(description, schema) {
  if (schema.$ref)
    return { name: schema.$ref.split("/").at(-1), ...description.components.schemas[schema.$ref.split("/").at(-1)] };
  const other = schema.oneOf?.find((one) => one.type !== "null");
  return other && schema.oneOf.length === 2 && schema.oneOf.some((one) => one.type === "null")
    ? resolved(description, other)
    : schema;
}

/** Returns the field of a property and the function that reads it. */
function inputOf(description, name, property, isRequired) {
  const schema = resolved(description, property);
  const label = name.replaceAll("_", " ");
  const about = property.description;
  const types = [schema.type].flat();
  const usual = { required: isRequired, autocomplete: "off", spellcheck: "false" };
  if (types.includes("object")) return ofFile(label, about, { ...usual, accept: ".json" }, (text) => JSON.parse(text));
  if (LONG.includes(schema.name)) return ofFile(label, about, usual, (text) => text);
  if (schema.enum)
    return ofText(choice(label, isRequired ? schema.enum : ["", ...schema.enum], {}, about), (text) => text);
  if (types.includes("boolean")) return ofCheck(field(label, { type: "checkbox" }, about));
  if (types.includes("integer")) return ofText(field(label, { ...usual, type: "number" }, about), Number);
  if (schema.name === "Quota")
    return ofText(field(label, usual, about), (text) => (text === "none" ? text : Number(text)));
  return ofText(field(label, usual, about), (text) => text.trim());
}

const ofText = (input, read) => ({
  input,
  value: () => (input.given() === undefined ? undefined : read(input.value())),
});
const ofCheck = (input) => ({ input, value: () => input.value() || undefined });

/** A text that usually comes in a file, which may also be pasted. */
function ofFile(label, about, attributes, read) {
  const { accept, ...usual } = attributes;
  const input = area(label, usual, about);
  const file = element("input", { type: "file", accept, "aria-label": `File with the ${label}` });
  file.addEventListener("change", async () => {
    if (file.files[0]) input.input.value = await file.files[0].text();
  });
  input.row.append(file);
  const value = () => {
    if (input.given() === undefined) return undefined;
    try {
      return read(input.value());
    } catch (error) {
      throw new Error(`${label}: ${error.message}`);
    }
  };
  return { input, value };
}
