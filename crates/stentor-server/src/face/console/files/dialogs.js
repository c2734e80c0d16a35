// Dialogs: the login, questions before a change that cannot be undone, and secrets that are shown once.

import { change, here, read } from "./api.js";
import { button, element, fill, part } from "./elements.js";
import { field, form } from "./forms.js";

const NOTICE_MS = 8_000;
let noticeTimer;

/** Shows a short notice, which screen readers read out. */
export function notice(text, isTrouble = false) {
  const place = part("notice");
  clearTimeout(noticeTimer);
  place.classList.toggle("trouble", isTrouble);
  fill(
    place,
    element("span", {}, text),
    button("Close", () => fill(place)),
  );
  if (!isTrouble) noticeTimer = setTimeout(() => fill(place), NOTICE_MS);
}

/** Opens a modal dialog. `build` gets the function that closes it with a result. */
function open(title, build, { mayCancel = true } = {}) {
  return new Promise((done) => {
    const dialog = element("dialog", { "aria-labelledby": "dialog-title" });
    const close = (result) => {
      dialog.close();
      dialog.remove();
      done(result);
    };
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      if (mayCancel) close(undefined);
    });
    dialog.append(element("h2", { id: "dialog-title" }, title), ...build(close));
    document.body.append(dialog);
    dialog.showModal();
  });
}

let login = null;

/** Asks for a key, or sends to the identity provider, until a session is open. The page below stays as it is. */
export function logIn() {
  login ??= open("Log in", loginForm, { mayCancel: false }).finally(() => (login = null));
  return login;
}

function loginForm(close) {
  const key = field("API key", {
    type: "password",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
    autofocus: true,
  });
  const where = "The root key is in root.key of the server's data directory. The key of an app opens that app alone.";
  const hint = `${where} The browser keeps neither.`;
  return [
    personLogin(),
    element("p", {}, hint),
    form("Log in", [key], async () => {
      here.session = null;
      here.session = await change("POST", "/console/session", { key: key.value().trim() });
      close(here.session);
    }),
  ];
}

/** A link to the identity provider, if there is one. */
function personLogin() {
  const place = element("div");
  const shown = ({ person }) => person && fill(place, element("a", { href: person }, "Log in with your account"));
  read("/console/login-ways").then(shown);
  return place;
}

/** Asks before a change. With a `word`, that word has to be typed. */
export function confirmed(title, text, action, word) {
  return open(title, (close) => {
    const typed =
      word && field(`Type ${word} to go on`, { required: true, autocomplete: "off", pattern: escaped(word) });
    const cancel = button("Cancel", () => close(false));
    return [element("p", {}, text), form(action, typed ? [typed] : [], async () => close(true), { beside: [cancel] })];
  });
}

const escaped = (word) => word.replace(/[^A-Za-z0-9_]/g, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);

/** Shows a secret once. */
export function showSecret(title, text, secret) {
  return open(title, (close) => [
    element("p", {}, text),
    element("p", {}, element("code", { class: "secret", id: "secret" }, secret)),
    element(
      "p",
      {},
      button("I have stored it", () => close(true)),
    ),
  ]);
}
