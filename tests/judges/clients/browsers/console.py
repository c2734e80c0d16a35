"""The console in a browser: used as a person uses it, by its labels and buttons, and examined by axe-core and html-validate.

    console.py chromium|firefox PROFILE URL FACTS PICTURES

FACTS is a JSON file with the root key, the credential of the push service, and the folder of the Node packages. Runs the steps whose names
come on standard input, one JSON text a line, and prints one JSON line about each.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import chromium
import firefox

BROWSER, PROFILE, URL, FACTS, PICTURES = sys.argv[1], Path(sys.argv[2]), sys.argv[3], json.loads(Path(sys.argv[4]).read_text()), Path(sys.argv[5])
WIDTHS = {"desk": 1280, "phone": 390}
# Firefox takes its colours from its settings: it judges the dark ones.
SCHEMES = ["light", "dark"] if BROWSER == "chromium" else ["dark"]
TITLE = "<img src=x onerror=\"window.hacked='title'\"> Sale & <script>window.hacked='script'</script>"
USER = "<svg onload=window.hacked='user'>"
NAME = "\"><iframe srcdoc='<script>top.hacked=1</script>'>"
TOKENS = ["token-1", "token-2", "gone"]
# A script sets the width of a part of a bar, the browser writes the text its own way, a table whose rows are shown as cards loses its roles
# unless they are named, and a browser shall not offer to keep a key.
UNJUDGED = ["no-inline-style", "attribute-boolean-style", "no-trailing-whitespace", "no-redundant-role", "autocomplete-password"]
HELPERS = """
const ask = window.fetch;
window.fetch = (...request) => {
  judge.asked += 1;
  return ask(...request).finally(() => (judge.asked -= 1));
};
window.judge = {
  asked: 0,
  async until(found, what) {
    for (const begin = Date.now(); Date.now() - begin < 20_000; ) {
      const value = await found();
      if (value) return value;
      await new Promise((over) => setTimeout(over, 50));
    }
    throw new Error(`it does not come: ${what ?? found}: ${document.body.innerText}`);
  },
  field(label) {
    const labels = [...document.querySelectorAll('label')].filter((one) => one.textContent.startsWith(label));
    const dialog = document.querySelector('dialog[open]');
    const found = labels.find((one) => !dialog || dialog.contains(one));
    return found && document.getElementById(found.htmlFor);
  },
  async enter(label, text) {
    const input = await this.until(() => this.field(label), label);
    for (let around = input; around; around = around.parentElement) if (around.localName === 'details') around.open = true;
    input.value = text;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    input.dispatchEvent(new Event('change', { bubbles: true }));
  },
  async click(text) {
    const all = () => [...document.querySelectorAll('dialog[open] button, main button, main a, header button, nav a')];
    const dialog = () => document.querySelector('dialog[open]');
    const found = () => all().find((one) => one.textContent === text && (!dialog() || dialog().contains(one)));
    (await this.until(found, text)).click();
  },
  title: (text) => judge.until(() => document.querySelector('h1')?.textContent === text, text),
  shows: (text) => judge.until(() => document.querySelector('main').textContent.includes(text), text),
  async go(view) {
    location.hash = view;
    await new Promise((over) => setTimeout(over));
    await this.until(() => document.querySelector('h1') && !document.title.startsWith('Loading'), view);
    await this.rests();
  },
  /** Waits until the page has all that it asked for. */
  async rests() {
    for (let rest = 0; rest < 3; rest = this.asked === 0 ? rest + 1 : 0) await new Promise(requestAnimationFrame);
  },
  app: () => location.hash.split('/')[1],
};
"""


class Failed(Exception):
    pass


class Console:
    def __init__(self, browser):
        self.browser = browser
        self.places = {}

    async def run(self, script):
        told = await self.browser.run(script)
        if not told["ok"]:
            raise Failed(told["error"])
        return told["value"]

    async def log_in(self):
        await self.run(HELPERS)
        # By keyboard alone: the field has the focus.
        await self.run("await judge.until(() => document.activeElement === judge.field('API key'), 'the focus');")
        for letter in FACTS["root"]:
            await self.browser.press(letter)
        await self.browser.press("Enter")
        await self.run("await judge.title('Overview'); await judge.shows('Create the first one');")

    async def prove(self):
        """From an empty server to the proof."""
        await self.run(
            f"await judge.click('Create the first one'); await judge.enter('Name', {json.dumps(NAME)}); await judge.click('Create app');"
            "await judge.title('Credentials'); await judge.click('Set a credential …');"
            "await judge.until(() => judge.field('service account'), 'the form');"
        )
        await self.clean("credential-form")
        await self.run(
            f"await judge.enter('service account', {json.dumps(FACTS['service_account'])});"
            f"await judge.enter('endpoint', {json.dumps(FACTS['endpoint'])});"
            f"await judge.enter('ca pem', {json.dumps(FACTS['ca_pem'])});"
            "await judge.click('Save'); await judge.click('Check'); await judge.shows('It works');"
        )
        for number, token in enumerate(TOKENS):
            user = USER if number == 0 else ""
            await self.run(
                "if (!location.hash.endsWith('/devices')) await judge.go(`#/${judge.app()}/devices`); await judge.title('Devices');"
                f"await judge.enter('Token', {json.dumps(token)}); await judge.enter('Topics', 'news');"
                "const all = [...document.querySelectorAll('form')].at(-1);"
                "const user = [...all.querySelectorAll('label')].find((one) => one.textContent === 'User');"
                f"document.getElementById(user.htmlFor).value = {json.dumps(user)}; await judge.click('Register');"
                f"await judge.until(() => document.querySelectorAll('tbody tr').length === {number + 1}, 'device {number}');"
            )
        await self.run("await judge.shows(`<svg onload=`);")
        await self.run(
            "await judge.go(`#/${judge.app()}/compose`); await judge.title('Compose a message');"
            f"await judge.enter('Name of the topic', 'news'); await judge.enter('Title', {json.dumps(TITLE)});"
            "await judge.enter('Body', 'From the console'); await judge.click('Count and preview');"
            "await judge.shows('The message would go to 3 devices'); await judge.shows('Request to fcm');"
            "document.querySelectorAll('#checked details').forEach((one) => (one.open = true));"
        )
        await self.clean("compose")
        # More devices than may be sent to without a question.
        await self.run("await judge.click('Send …'); await judge.enter('Type 3', '3');")
        await self.clean("question")
        await self.run("await judge.click('Send');")
        await self.run(f"await judge.title({json.dumps(TITLE)}); await judge.shows('finished'); await judge.shows('balanced');")
        proof = await self.run(
            "const parts = [...document.querySelectorAll('[data-part]')].map((row) => [row.dataset.part, Number(row.cells[1].textContent)]);"
            "const reasons = document.querySelector('[data-part=rejected] .reasons')?.textContent;"
            "return { parts: Object.fromEntries(parts), sum: Number(document.getElementById('sum').textContent), reasons,"
            " proof: document.getElementById('proof').textContent, bar: document.querySelector('.bar').getAttribute('aria-label') };"
        )
        await self.run(
            "judge.campaign = location.hash; await judge.enter('State', 'rejected');"
            "await judge.until(() => document.querySelectorAll('.paged tbody tr').length === 1, 'one');"
            "document.querySelector('.paged tbody a').click(); await judge.title('One message on one device');"
            "await judge.shows('unregistered'); judge.delivery = location.hash; judge.device = location.hash.split('/').at(-1);"
        )
        await self.test_send()
        self.places = await self.run(
            "const app = judge.app(); const of = (view) => `#/${app}/${view}`;"
            "return { overview: '#/overview', apps: '#/apps', nodes: '#/nodes', audit: '#/audit', settings: '#/settings',"
            " campaigns: of('campaigns'), campaign: judge.campaign, delivery: judge.delivery, devices: of('devices'),"
            " device: of(`devices/${judge.device}`), users: of('users'), user: of(`users/${encodeURIComponent("
            + json.dumps(USER)
            + ")}`), groups: of('groups'), topics: of('topics'), schedules: of('schedules'), proposals: of('proposals'), credentials: of('credentials'),"
            " upstream: of('upstream'), keys: of('app') };"
        )
        return proof

    async def test_send(self):
        """Sends a test to one device, and makes a schedule."""
        await self.run(
            "await judge.go(`#/${judge.app()}/devices`); await judge.title('Devices');"
            "const first = await judge.until(() => document.querySelector('tbody a'), 'a device'); const device = first.textContent;"
            "await judge.go(`#/${judge.app()}/compose/news`); await judge.title('Compose a message');"
            "await judge.enter('Title', 'A test'); await judge.enter('Test device', device); await judge.click('Send a test');"
            "await judge.title('One message on one device'); await judge.shows('accepted');"
            "await judge.go(`#/${judge.app()}/compose/news`); await judge.title('Compose a message');"
            "await judge.enter('Title', 'Every morning'); await judge.enter('Name of the schedule', 'morning');"
            "await judge.enter('Cron pattern', '0 9 * * *'); await judge.enter('Time zone', 'Europe/Rome'); await judge.click('Send …');"
            "await judge.title('Schedules'); await judge.shows('morning');"
            "const { csrf } = await (await fetch('/console/session')).json();"
            "const headers = { 'X-Stentor-CSRF': csrf, 'Content-Type': 'application/json' };"
            f"const message = {{ target: {{ topic: 'news' }}, notification: {{ title: {json.dumps(TITLE)} }} }};"
            "const path = `/v1/proposals?app=${judge.app()}`;"
            "const made = await fetch(path, { method: 'POST', headers, body: JSON.stringify({ message }) });"
            "if (made.status !== 201) throw new Error(await made.text());"
        )

    async def examine(self):
        """Examines the next page, in each width and in each scheme; returns nothing once all were examined."""
        if not self.places:
            return None
        name, place = self.places.popitem()
        await self.run(f"document.querySelector('#notice button')?.click(); await judge.go({json.dumps(place)});")
        findings = await self.seen(name)
        hacked = await self.run("return window.hacked ?? document.querySelector('main :is(img, iframe, script, svg)')?.localName ?? null;")
        return {"page": name, "findings": findings, "hacked": hacked}

    async def clean(self, name):
        """Demands that the examiners find nothing."""
        if findings := await self.seen(name):
            raise Failed(json.dumps(findings))

    async def seen(self, name):
        """Takes pictures of the page, and returns what the examiners find in it."""
        findings = []
        for scheme in SCHEMES:
            for kind, width in WIDTHS.items():
                await self.browser.look(width, scheme)
                wide = await self.run("await new Promise(requestAnimationFrame); return document.documentElement.scrollWidth > innerWidth;")
                if wide:
                    findings.append(f"{name}, {kind}: wider than the window")
                findings += [f"{name}, {kind}, {scheme}: {one}" for one in await self.axe()]
                (PICTURES / f"{name}-{kind}-{scheme}.png").write_bytes(await self.browser.picture())
        await self.browser.look(WIDTHS["desk"], SCHEMES[0])
        return findings + [f"{name}: {one}" for one in await self.valid()]

    async def axe(self):
        packages = Path(FACTS["packages"])
        if not await self.run("return 'axe' in window;"):
            await self.run((packages / "node_modules/axe-core/axe.min.js").read_text())
        return await self.run(
            "const { violations } = await axe.run(document, { resultTypes: ['violations'] });"
            "return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html + node.failureSummary).join(' | ')}`);"
        )

    async def valid(self):
        """Validates the elements that the scripts have made."""
        text = "<!DOCTYPE html>\n" + await self.run("return document.documentElement.outerHTML;")
        rules = {"extends": ["html-validate:recommended"], "rules": dict.fromkeys(UNJUDGED, "off"), "root": True}
        config = PICTURES / "htmlvalidate.json"
        config.write_text(json.dumps(rules))
        program = Path(FACTS["packages"]) / "node_modules/.bin/html-validate"
        words = [str(program), "--stdin", "--formatter", "json", "--config", str(config)]
        output = await asyncio.to_thread(subprocess.run, words, input=text, capture_output=True, text=True)
        if not output.stdout:
            raise Failed(output.stderr)
        messages = [one for file in json.loads(output.stdout) for one in file["messages"]]
        return [f"{one['ruleId']}: {one['message']} at {one['selector']}" for one in messages]

    async def keyboard(self):
        """Loads the page again, which keeps its session, and follows a link with the keyboard alone."""
        await self.run("await judge.go('#/apps'); setTimeout(() => location.reload());")
        told = {"ok": False}
        while not told["ok"] or told["value"] != "Apps":
            # The page may end while it is asked.
            told = await self.browser.run("return 'judge' in window ? null : document.querySelector('h1')?.textContent;")
            await asyncio.sleep(chromium.POLL_SECONDS)
        await self.run(HELPERS)
        stops = []
        for _ in range(3):
            await self.browser.press("Tab")
            stops.append(await self.run("return document.activeElement.textContent;"))
        outline = await self.run("return getComputedStyle(document.activeElement).outlineStyle;")
        await self.browser.press("Enter")
        await self.run("await judge.title('Overview');")
        return {"stops": stops, "outline": outline}

    async def returns(self):
        """Ends the session below a page on which something was typed, and logs in again."""
        await self.run(
            "const app = (await (await fetch('/v1/apps')).json()).apps[0].id;"
            "await judge.go(`#/${app}/compose/news`); await judge.title('Compose a message'); await judge.enter('Title', 'Kept');"
            "const { csrf } = await (await fetch('/console/session')).json();"
            "await fetch('/console/session', { method: 'DELETE', headers: { 'X-Stentor-CSRF': csrf } });"
            f"await judge.click('Count and preview'); await judge.enter('API key', {json.dumps(FACTS['root'])});"
            "await judge.click('Log in'); await judge.until(() => !document.querySelector('dialog'), 'the end of the dialog');"
            "await judge.click('Count and preview'); await judge.shows('The message would go to');"
        )
        return await self.run("return judge.field('Title').value;")

    async def waits(self):
        """Opens a page that reads again and again."""
        await self.run("await judge.go('#/overview'); await judge.title('Overview'); await judge.shows('Up for');")

    async def reconnects(self):
        await self.run("await judge.until(() => document.getElementById('connection').textContent.includes('Reconnecting'), 'the notice');")

    async def goes_on(self):
        await self.run(
            "await judge.until(() => document.getElementById('connection').textContent === '', 'the end of the notice');"
            "await judge.shows('Up for');"
        )

    async def log_out(self):
        await self.run("await judge.click('Log out'); await judge.until(() => judge.field('API key'), 'the login');")
        await self.clean("login")
        return await self.run("return (await fetch('/v1/apps')).status;")


async def serve(browser):
    PICTURES.mkdir(parents=True, exist_ok=True)
    await browser.open(URL)
    console = Console(browser)
    await browser.look(WIDTHS["desk"], SCHEMES[0])
    print(json.dumps({"ok": True, "value": "ready"}), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            told = {"ok": True, "value": await getattr(console, json.loads(line))()}
        except Failed as error:
            told = {"ok": False, "error": str(error)}
        print(json.dumps(told), flush=True)


async def main():
    if BROWSER == "chromium":
        async with chromium.browsing(chromium.command(str(PROFILE))) as browser:
            await serve(browser)
    else:
        # 0 is dark.
        async with firefox.browsing(PROFILE, {"layout.css.prefers-color-scheme.content-override": 0}) as browser:
            await serve(browser)


asyncio.run(main())
