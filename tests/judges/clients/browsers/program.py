"""The program of a browser: started until it listens, and asked by a test."""

import asyncio
import json
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from contextlib import asynccontextmanager

import websockets

START_SECONDS_MAX = 60


async def drained(stream):
    async for _ in stream:
        pass


async def address_of(process, protocol):
    async for line in process.stdout:
        if found := re.search(rf"{protocol} listening on (ws://\S+)".encode(), line):
            return found[1].decode()
    raise SystemExit(f"the browser ended before {protocol} listened")


@asynccontextmanager
async def connected(words, protocol, path=""):
    """Runs a browser, and connects to its protocol."""
    process = await asyncio.create_subprocess_exec(*words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
    drain = None
    try:
        address = await asyncio.wait_for(address_of(process, protocol), START_SECONDS_MAX)
        drain = asyncio.create_task(drained(process.stdout))
        async with websockets.connect(f"{address}{path}", max_size=None, proxy=None) as socket:
            yield socket
    finally:
        process.terminate()
        await process.wait()
        if drain:
            drain.cancel()


async def answer(browser, page):
    """Opens a page, and runs the scripts of the standard input in it."""
    print(json.dumps(await browser.open(page)), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await browser.run(json.loads(line))), flush=True)
