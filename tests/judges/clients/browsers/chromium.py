"""Chromium, unmodified, driven by its DevTools protocol. As a program it is a device: a page with a service worker, in a browser that is
told where GCM is.

    chromium.py PROFILE PAGE SERVER MCS

Runs the scripts that come on standard input, one JSON text a line, in the page, and prints one JSON line about each.
"""

import asyncio
import base64
import json
import sys
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from program import answer, connected

POLL_SECONDS = 0.05
HEIGHT = 900


def command(profile, *flags):
    return [
        "chromium",
        "--headless=new",
        # Its sandbox does not let root in.
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={profile}",
        "--remote-debugging-port=0",
        # The certificate is of an authority that only the test knows.
        "--ignore-certificate-errors",
        *flags,
        "about:blank",
    ]


class Browser:
    def __init__(self, socket):
        self.socket, self.number, self.session = socket, 0, {}

    async def ask(self, method, **params):
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": params, **self.session}))
        while True:
            heard = json.loads(await self.socket.recv())
            if heard.get("id") == self.number:
                return heard.get("result") or {"exceptionDetails": heard.get("error")}

    async def open(self, page):
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(page))
        await self.ask("Browser.grantPermissions", permissions=["notifications"], origin=origin)
        target = await self.ask("Target.createTarget", url="about:blank")
        attached = await self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
        await self.ask("Page.navigate", url=page)
        # The empty page is complete as well, and what waits in it ends without a reply when the other one comes.
        loaded = "if (document.readyState !== 'complete') await new Promise((done) => addEventListener('load', done));"
        while True:
            told = await self.run(f"{loaded} return location.href === 'about:blank' ? 'empty' : 'ready';")
            if told == {"ok": True, "value": "ready"}:
                return told
            await asyncio.sleep(POLL_SECONDS)

    async def run(self, script):
        expression = f"(async () => JSON.stringify(await (async () => {{ {script} }})() ?? null))()"
        answer = await self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer or "value" not in answer.get("result", {}):
            return {"ok": False, "error": json.dumps(answer)}
        return {"ok": True, "value": json.loads(answer["result"]["value"])}

    async def look(self, width, scheme):
        """Sets the width of the window and the colours that its reader prefers."""
        size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width < HEIGHT}
        await self.ask("Emulation.setDeviceMetricsOverride", **size)
        await self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def press(self, key):
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        about = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "text": text}
        await self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **about)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    async def picture(self):
        answer = await self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])


@asynccontextmanager
async def browsing(words):
    async with connected(words, "DevTools") as socket:
        yield Browser(socket)


async def main():
    profile, page, server, mcs = sys.argv[1:5]
    words = command(
        profile,
        f"--gcm-checkin-url={server}/checkin",
        f"--gcm-registration-url={server}/c2dm/register3",
        f"--gcm-mcs-endpoint={mcs}",
    )
    async with browsing(words) as browser:
        await answer(browser, page)


if __name__ == "__main__":
    asyncio.run(main())
