"""Persons who log in to the console at an identity provider, in a browser, and log out again.

    persons.py PROFILE URL

Runs the steps that come on standard input, one JSON text a line such as "log_in ada", and prints one JSON line about each.
"""

import asyncio
import json
import sys

import chromium

PROFILE, URL = sys.argv[1:]
# What the page is, once it is complete: of the console, or one of the identity provider that waits for the person.
STATE = """
if (document.readyState !== 'complete') return { state: 'loading' };
const at = location.href;
if (location.pathname === '/console/callback') return { state: 'refused', at, code: document.querySelector('code')?.textContent };
if (location.pathname === '/console' && document.querySelector('#who span')) return { state: 'in', at };
if (location.pathname === '/console' && document.querySelector('dialog a')) return { state: 'out', at };
if (location.pathname === '/console') return { state: 'loading', at };
if (document.querySelector('input[name=login]')) return { state: 'login', at };
if (document.querySelector('button[name=logout]')) return { state: 'logout', at };
return { state: document.querySelector('form button') ? 'consent' : 'loading', at };
"""
ENTER = """
document.querySelector('input[name=login]').value = %s;
document.querySelector('input[name=password]').value = 'any';
"""
# Helpers for a step: waiting, finding a button by its words, and changing something as a page of the console does.
HELPERS = """
const until = async (seen) => { for (;;) { const found = seen(); if (found) return found; await new Promise((over) => setTimeout(over, 50)); } };
const button = (text) => [...document.querySelectorAll('button')].filter((one) => one.textContent === text).at(-1);
const click = async (text) => (await until(() => button(text))).click();
const change = async (method, path, body) => {
  const { csrf } = await (await fetch('/console/session')).json();
  const headers = { 'X-Stentor-CSRF': csrf, 'Content-Type': 'application/json' };
  return fetch(path, { method, headers, body: JSON.stringify(body) });
};
"""
SUBMIT = "setTimeout(() => document.querySelector('form button').click());"


class Persons:
    def __init__(self, browser):
        self.browser = browser

    async def seen(self):
        """Returns the state of the page, which may end while it is asked."""
        told = await self.browser.run(STATE)
        return told["value"] if told["ok"] else {"state": "loading"}

    async def reach(self, goals, person=None):
        """Goes through the pages of the identity provider until one of the console is reached."""
        last = None
        while True:
            page = await self.seen()
            if page["state"] in goals:
                return page
            # Each page is answered once.
            if page["state"] != "loading" and (page["state"], page["at"]) != last:
                last = (page["state"], page["at"])
                await self.answer(page["state"], person)
            await asyncio.sleep(chromium.POLL_SECONDS)

    async def answer(self, state, person):
        if state == "out":
            await self.browser.run("setTimeout(() => document.querySelector('dialog a').click());")
        elif state == "login":
            await self.browser.run(ENTER % json.dumps(person) + SUBMIT)
        elif state == "logout":
            await self.browser.run("setTimeout(() => document.querySelector('button[name=logout]').click());")
        elif state == "consent":
            await self.browser.run(SUBMIT)

    async def log_in(self, person):
        page = await self.reach(["in", "refused"], person)
        if page["state"] == "refused":
            await self.browser.run("setTimeout(() => document.querySelector('a').click());")
            await self.reach(["out"])
            return {"code": page["code"]}
        return await self.value("return { who: document.querySelector('#who span').textContent };")

    async def create_app(self, name):
        """Creates an app as a page of the console does; returns the status."""
        return await self.value(HELPERS + f"return (await change('POST', '/v1/apps', {json.dumps({'name': name})})).status;")

    async def propose(self, title):
        """Writes a message to two devices, which needs an approval; returns what the author may do with it."""
        return await self.value(
            HELPERS + "const app = (await (await fetch('/v1/apps')).json()).apps[0].id;"
            "await change('PUT', `/v1/apps/${app}/credentials/null`, {});"
            "for (const token of ['one', 'two']) await change('POST', `/v1/devices?app=${app}`, { platform: 'android', provider: 'null', token });"
            "location.hash = `#/${app}/compose`;"
            "const field = (label) => until(() => {"
            "  const found = [...document.querySelectorAll('label')].find((one) => one.firstChild.textContent === label);"
            "  return found && document.getElementById(found.htmlFor);"
            "});"
            "const kind = await field('Kind'); kind.value = 'everyone'; kind.dispatchEvent(new Event('change'));"
            f"(await field('Title')).value = {json.dumps(title)};"
            "await click('Send …'); await click('Propose');"
            "const row = await until(() => location.hash.endsWith('/proposals') && document.querySelector('tbody tr'));"
            "return [...row.querySelectorAll('button')].map((one) => one.textContent);"
        )

    async def approve(self, title):
        """Approves the message that waits; returns the title of the page of its campaign, once that has finished."""
        return await self.value(
            HELPERS + "const app = (await (await fetch('/v1/apps')).json()).apps[0].id;"
            "location.hash = `#/${app}/proposals`;"
            f"await until(() => document.querySelector('tbody tr')?.textContent.includes({json.dumps(title)}));"
            "await click('Approve'); await until(() => document.querySelector('dialog')); await click('Approve');"
            "await until(() => location.hash.includes('/campaigns/') && document.querySelector('main').textContent.includes('finished'));"
            "return document.querySelector('h1').textContent;"
        )

    async def author(self, _):
        """Returns the author of the newest change, as the page of the audit trail shows it."""
        return await self.value(
            "location.hash = '#/audit';"
            "for (;;) {"
            "  const rows = document.querySelectorAll('.paged tbody tr');"
            "  if (rows.length > 0) return rows[0].cells[4].textContent;"
            "  await new Promise((over) => setTimeout(over, 50));"
            "}"
        )

    async def log_out(self, _):
        await self.browser.run("setTimeout(() => [...document.querySelectorAll('#who button')].at(-1).click());")
        await self.reach(["out"])
        return await self.value("return (await fetch('/v1/apps')).status;")

    async def value(self, script):
        told = await self.browser.run(script)
        if not told["ok"]:
            raise SystemExit(told["error"])
        return told["value"]


async def main():
    async with chromium.browsing(chromium.command(PROFILE)) as browser:
        await browser.open(URL)
        persons = Persons(browser)
        print(json.dumps({"ok": True, "value": "ready"}), flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            step, _, about = json.loads(line).partition(" ")
            print(json.dumps({"ok": True, "value": await getattr(persons, step)(about)}), flush=True)


asyncio.run(main())
