"""Firefox as a device: a page with a service worker, in the unmodified browser, which is told where its push service is.

    firefox.py PROFILE PAGE PUSH_SERVICE

Drives the browser by WebDriver BiDi, which it speaks itself. Runs the scripts that come on standard input, one JSON text a line, in
the page, and prints one JSON line about each.
"""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import websockets

PROFILE, PAGE, PUSH_SERVICE = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
START_SECONDS_MAX = 60
SETTINGS = {
    "dom.push.serverURL": PUSH_SERVICE,
    # Nothing else lets Firefox use a push service without TLS.
    "dom.push.testing.allowInsecureServerURL": True,
    "dom.push.connection.enabled": True,
    # 1 is granted.
    "permissions.default.desktop-notification": 1,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}


class Browser:
    def __init__(self, socket):
        self.socket, self.number = socket, 0

    async def ask(self, method, **params):
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            heard = json.loads(await self.socket.recv())
            if heard.get("id") == self.number:
                return heard

    async def run(self, context, script):
        answer = await self.ask(
            "script.callFunction",
            functionDeclaration=f"async () => JSON.stringify(await (async () => {{ {script} }})() ?? null)",
            awaitPromise=True,
            target={"context": context},
        )
        result = answer.get("result", {})
        if result.get("type") != "success":
            return {"ok": False, "error": json.dumps(answer)}
        return {"ok": True, "value": json.loads(result["result"]["value"])}


async def started():
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in SETTINGS.items()]
    PROFILE.mkdir(parents=True, exist_ok=True)
    (PROFILE / "user.js").write_text("\n".join(lines))
    command = ["firefox-esr", "--headless", "--no-remote", "--profile", str(PROFILE), "--remote-debugging-port=0"]
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=asyncio.subprocess.STDOUT)
    async for line in process.stdout:
        if found := re.search(rb"WebDriver BiDi listening on (ws://\S+)", line):
            return process, found[1].decode()
    raise SystemExit("Firefox ended before it listened")


async def drained(stream):
    async for _ in stream:
        pass


async def main():
    process, address = await asyncio.wait_for(started(), START_SECONDS_MAX)
    drain = asyncio.create_task(drained(process.stdout))
    try:
        async with websockets.connect(f"{address}/session", max_size=None, proxy=None) as socket:
            browser = Browser(socket)
            await browser.ask("session.new", capabilities={})
            tree = await browser.ask("browsingContext.getTree")
            context = tree["result"]["contexts"][0]["context"]
            await browser.ask("browsingContext.navigate", context=context, url=PAGE, wait="complete")
            print(json.dumps({"ok": True, "value": "ready"}), flush=True)
            loop = asyncio.get_running_loop()
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                print(json.dumps(await browser.run(context, json.loads(line))), flush=True)
    finally:
        process.terminate()
        await process.wait()
        drain.cancel()


asyncio.run(main())
