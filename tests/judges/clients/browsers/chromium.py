"""Chromium as a device: a page with a service worker, in the unmodified browser, which is told where GCM is.

    chromium.py PROFILE PAGE SERVER MCS

Drives the browser by its DevTools protocol. Runs the scripts that come on standard input, one JSON text a line, in the page, and
prints one JSON line about each.
"""

import asyncio
import json
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE
from urllib.parse import urlsplit

import websockets

PROFILE, PAGE, SERVER, MCS = sys.argv[1:5]
START_SECONDS_MAX = 60
POLL_SECONDS = 0.05
COMMAND = [
    "chromium",
    "--headless=new",
    # Its sandbox does not let root in.
    "--no-sandbox",
    "--disable-gpu",
    f"--user-data-dir={PROFILE}",
    "--remote-debugging-port=0",
    # The certificate is of an authority that only the test knows.
    "--ignore-certificate-errors",
    f"--gcm-checkin-url={SERVER}/checkin",
    f"--gcm-registration-url={SERVER}/c2dm/register3",
    f"--gcm-mcs-endpoint={MCS}",
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


async def started():
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    async for line in process.stderr:
        if found := re.search(rb"DevTools listening on (ws://\S+)", line):
            return process, found[1].decode()
    raise SystemExit("Chromium ended before it listened")


async def drained(stream):
    async for _ in stream:
        pass


async def main():
    process, address = await asyncio.wait_for(started(), START_SECONDS_MAX)
    drain = asyncio.create_task(drained(process.stderr))
    try:
        async with websockets.connect(address, max_size=None, proxy=None) as socket:
            browser = Browser(socket)
            print(json.dumps(await browser.open(PAGE)), flush=True)
            loop = asyncio.get_running_loop()
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                print(json.dumps(await browser.run(json.loads(line))), flush=True)
    finally:
        process.terminate()
        await process.wait()
        drain.cancel()


asyncio.run(main())
