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
        return await self.value(
            "const { csrf } = await (await fetch('/console/session')).json();"
            "const headers = { 'X-Stentor-CSRF': csrf, 'Content-Type': 'application/json' };"
            f"const body = {json.dumps(json.dumps({'name': name}))};"
            "return (await fetch('/v1/apps', { method: 'POST', headers, body })).status;"
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
