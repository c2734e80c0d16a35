"""Firefox, unmodified, driven by WebDriver BiDi, which it speaks itself. As a program it is a device: a page with a service worker, in a
browser that is told where its push service is.

    firefox.py PROFILE PAGE PUSH_SERVICE

Runs the scripts that come on standard input, one JSON text a line, in the page, and prints one JSON line about each.
"""

import asyncio
import base64
import json
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from contextlib import asynccontextmanager
from pathlib import Path

import websockets

START_SECONDS_MAX = 60
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


async def drained(stream):
    async for _ in stream:
        pass


async def listening(process):
    async for line in process.stdout:
        if found := re.search(rb"WebDriver BiDi listening on (ws://\S+)", line):
            return found[1].decode()
    raise SystemExit("Firefox ended before it listened")


@asynccontextmanager
async def browsing(profile, settings):
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in (USUAL | settings).items()]
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "user.js").write_text("\n".join(lines))
    words = ["firefox-esr", "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
    process = await asyncio.create_subprocess_exec(*words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
    drain = None
    try:
        address = await asyncio.wait_for(listening(process), START_SECONDS_MAX)
        drain = asyncio.create_task(drained(process.stdout))
        async with websockets.connect(f"{address}/session", max_size=None, proxy=None) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        await process.wait()
        if drain:
            drain.cancel()


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
        print(json.dumps(await browser.open(page)), flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(await browser.run(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
