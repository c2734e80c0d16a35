"""Firefox, unmodified, driven by WebDriver BiDi, which it speaks itself. As a program it is a device: a page with a service worker, in a
browser that is told where its push service is.

    firefox.py PROFILE PAGE PUSH_SERVICE

Runs the scripts that come on standard input, one JSON text a line, in the page, and prints one JSON line about each.
"""

import asyncio
import base64
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from program import answer, connected

HEIGHT = 900
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c"}
USUAL = {
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}


class Browser:
    def __init__(self, socket):
        self.socket, self.number, self.context = socket, 0, None

    async def ask(self, method, **params):
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            heard = json.loads(await self.socket.recv())
            if heard.get("id") == self.number:
                return heard

    async def open(self, page):
        await self.ask("session.new", capabilities={})
        tree = await self.ask("browsingContext.getTree")
        self.context = tree["result"]["contexts"][0]["context"]
        await self.ask("browsingContext.navigate", context=self.context, url=page, wait="complete")
        return {"ok": True, "value": "ready"}

    async def run(self, script):
        answer = await self.ask(
            "script.callFunction",
            functionDeclaration=f"async () => JSON.stringify(await (async () => {{ {script} }})() ?? null)",
            awaitPromise=True,
            target={"context": self.context},
        )
        result = answer.get("result", {})
        if result.get("type") != "success":
            return {"ok": False, "error": json.dumps(answer)}
        return {"ok": True, "value": json.loads(result["result"]["value"])}

    async def look(self, width, _scheme):
        """Sets the width of the window; the colours are those of its settings."""
        size = {"width": width, "height": HEIGHT}
        await self.ask("browsingContext.setViewport", context=self.context, viewport=size)

    async def press(self, key):
        value = KEYS.get(key, key)
        strokes = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        await self.ask("input.performActions", context=self.context, actions=[{"type": "key", "id": "keys", "actions": strokes}])

    async def picture(self):
        answer = await self.ask("browsingContext.captureScreenshot", context=self.context, origin="document")
        return base64.b64decode(answer["result"]["data"])


@asynccontextmanager
async def browsing(profile, settings):
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in (USUAL | settings).items()]
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "user.js").write_text("\n".join(lines))
    words = ["firefox-esr", "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
    async with connected(words, "WebDriver BiDi", "/session") as socket:
        yield Browser(socket)


async def main():
    profile, page, push_service = sys.argv[1:4]
    settings = {
        "dom.push.serverURL": push_service,
        # Nothing else lets Firefox use a push service without TLS.
        "dom.push.testing.allowInsecureServerURL": True,
        "dom.push.connection.enabled": True,
        # 1 is granted.
        "permissions.default.desktop-notification": 1,
    }
    async with browsing(Path(profile), settings) as browser:
        await answer(browser, page)


if __name__ == "__main__":
    asyncio.run(main())
