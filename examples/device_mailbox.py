"""Measures what devices cost that are away: a campaign to all of them in the store, and the way back of one for which much waits, and of many.

    python3 examples/device_mailbox.py --stentor target/release/stentor [--devices 1000000] [--messages 1000] [--storm 2000] [--json]

It starts a server of its own on loopback and registers devices of the gateway that never connect. A campaign to everyone is accepted and
settled; the rows of all tables and the bytes of the database are counted before and after it. Then an app of a thousand devices gets
messages to everyone, one after the other, and one of its devices connects by MQTT 3.1.1 again and again without confirming anything: what is
measured is the time from its first byte, login and subscription together, to the first message. The same is measured twice after the server
was killed and started again, when nothing is in its memory. At last as many devices as `--storm` says come back at the same moment after such a
start, each with some messages waiting: what is measured is the time until each has its first one, and the processor time that the server
took for that, which depends less on what else the machine does. Linux, Python 3.9; nothing else.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import selectors
import socket
import sqlite3
import struct
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Dict, List, cast

from device_idle import Server, end, varint, wait_until

WINDOW_COUNT = 100
"""Deliveries that a device of MQTT may have unconfirmed: so many come before the first is confirmed."""
RETURNS = 10
STORM_MESSAGES = 5
APP_DEVICES = 1_000
"""Devices of the app whose device comes back: each of its messages is a chunk of so many."""


def call(server: Server, app: str, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> Any:
    """Asks the API as the operator, for an app."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    root = (server.folder / "data" / "root.key").read_text().strip()
    connection.request(method, path, body, {"Authorization": f"Bearer {root}", "X-Stentor-App": app, "Content-Type": kind})
    response = connection.getresponse()
    text = response.read()
    assert response.status < 300, (path, response.status, text)
    return json.loads(text or b"{}")


def fill(server: Server, app: str, count: int) -> None:
    """Registers devices that nobody has."""
    call(server, app, "PUT", f"/v1/apps/{app}/credentials/gateway", b"{}")
    for first in range(0, count, 100_000):
        places = range(first, min(count, first + 100_000))
        rows = (f'{{"platform":"linux","provider":"gateway","token":"{app}.away{place:028}"}}\n' for place in places)
        told = call(server, app, "POST", "/v1/devices/import?format=ndjson", "".join(rows).encode(), "application/x-ndjson")
        assert told["created"] == len(places), told


def send(server: Server, app: str, text: str) -> str:
    """Sends to everyone; returns the campaign."""
    message = {"target": "everyone", "notification": {"title": "Away", "body": text}, "ttl_seconds": 86_400}
    campaign: str = call(server, app, "POST", "/v1/messages", json.dumps(message).encode())["campaign"]
    return campaign


def settle(server: Server, app: str, campaign: str, count: int) -> None:
    """Waits until all deliveries of a campaign are accepted."""
    path = f"/v1/campaigns/{campaign}"
    wait_until(lambda: bool(call(server, app, "GET", path)["totals"]["accepted"] == count), "the end of the campaign", 600)


def stored(server: Server) -> Dict[str, int]:
    """Counts the rows of each table, and the bytes of the database without its log."""
    database = sqlite3.connect(f"file:{server.folder / 'data' / 'stentor.db'}?mode=ro", uri=True)
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    names = [name for name in names if not name.startswith("sqlite_")]
    rows = {name: int(database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]) for name in names}
    pages, size = (database.execute(f"PRAGMA {one}").fetchone()[0] for one in ("page_count", "page_size"))
    database.close()
    return {**rows, "bytes": pages * size}


def campaign_to_all(server: Server, count: int) -> Dict[str, Any]:
    """Measures a campaign to devices that are away."""
    began = time.monotonic()
    fill(server, server.app, count)
    registered, before = time.monotonic(), stored(server)
    campaign = send(server, server.app, "to all")
    settle(server, server.app, campaign, count)
    ended, after = time.monotonic(), stored(server)
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    added = grown.pop("bytes", 0)
    return {
        "devices": count,
        "registered_seconds": round(registered - began, 2),
        "settled_seconds": round(ended - registered, 2),
        "rows": sum(grown.values()),
        "rows_by_table": grown,
        "bytes": added,
    }


def return_of_one(server: Server, count: int) -> Dict[str, Any]:
    """Measures the way back of a device for which so many messages wait."""
    joined = server.join()
    fill(server, server.app, APP_DEVICES - 1)
    for number in range(count):
        campaign = send(server, server.app, str(number))
    settle(server, server.app, campaign, APP_DEVICES)
    samples = [first_message(server, joined) for _ in range(RETURNS)]
    # What is in the server's memory is gone then.
    end(server.process)
    server.start()
    restarted = [first_message(server, joined) for _ in range(2)]
    return {
        "messages": count,
        "after_restart_ms": [round(one["first"], 2) for one in restarted],
        "first_message_ms": [round(one["first"], 2) for one in samples],
        "first_message_ms_median": round(median(one["first"] for one in samples), 2),
        "window_ms_median": round(median(one["window"] for one in samples), 2),
    }


def storm(server: Server, count: int) -> Dict[str, Any]:
    """Measures the way back of many at once, after a start."""
    devices = [joined_when_allowed(server) for _ in range(count)]
    for number in range(STORM_MESSAGES):
        settle(server, server.app, send(server, server.app, str(number)), count)
    end(server.process)
    server.start()
    logins = [login(joined, f"d{number}".encode()) for number, joined in enumerate(devices)]
    spent, began = processor_seconds(server), time.monotonic()
    waiting, again = selectors.DefaultSelector(), 0
    stay: List[socket.socket] = []
    for said in logins:
        come(server, waiting, said)
    while waiting.get_map():
        for key, _ in waiting.select(60):
            device, (said, came) = cast(socket.socket, key.fileobj), key.data
            piece = device.recv(65_536)
            came.extend(piece)
            if piece and 3 not in packets(bytes(came))[0]:
                continue
            waiting.unregister(device)
            if piece:
                stay.append(device)
            else:
                # A login that waits for more than ten seconds is ended; devices come again.
                device.close()
                come(server, waiting, said)
                again += 1
    seconds, spent = time.monotonic() - began, processor_seconds(server) - spent
    told = {"seconds": round(seconds, 2), "server_processor_seconds": round(spent, 2)}
    return {"devices": count, "messages": STORM_MESSAGES, "came_again": again, **told}


def come(server: Server, waiting: selectors.BaseSelector, said: bytes) -> None:
    """Connects a device, which logs in and then waits."""
    device = socket.create_connection(("127.0.0.1", server.device_port("mqtt")))
    device.sendall(said)
    waiting.register(device, selectors.EVENT_READ, (said, bytearray()))


def joined_when_allowed(server: Server) -> Dict[str, str]:
    """Registers a device; the server takes so many of an app in a second."""
    while True:
        try:
            return server.join()
        except AssertionError:
            time.sleep(1)


def processor_seconds(server: Server) -> float:
    """Returns the processor time of the server so far."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def login(joined: Dict[str, str], name: bytes) -> bytes:
    """Returns the bytes by which a device of MQTT 3.1.1 logs in and asks for its messages."""
    fields = [name, joined["token"].encode(), joined["secret"].encode()]
    body = b"\x00\x04MQTT\x04\xc2\x00\x3c" + b"".join(struct.pack(">H", len(one)) + one for one in fields)
    return b"\x10" + varint(len(body)) + body + b"\x82\x0f\x00\x01\x00\x0amessages/#\x01"


def first_message(server: Server, joined: Dict[str, str]) -> Dict[str, float]:
    """Connects, and returns when the first message came and when the window was full, in milliseconds."""
    device = socket.create_connection(("127.0.0.1", server.device_port("mqtt")))
    device.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    said = login(joined, b"away")
    began = time.monotonic()
    device.sendall(said)
    came, first, count = b"", 0.0, 0
    while count < WINDOW_COUNT:
        piece = device.recv(65_536)
        assert piece, "the server has closed"
        came += piece
        kinds, came = packets(came)
        count += kinds.count(3)
        if count and not first:
            first = time.monotonic() - began
    window = time.monotonic() - began
    device.close()
    return {"first": first * 1e3, "window": window * 1e3}


def packets(came: bytes) -> "tuple[List[int], bytes]":
    """Returns the kinds of the packets that are whole, and what is left."""
    kinds: List[int] = []
    at = 0
    while True:
        length, shift, place = 0, 0, at + 1
        while place < len(came):
            length, shift, place = length | (came[place] & 127) << shift, shift + 7, place + 1
            if came[place - 1] < 128:
                break
        else:
            return kinds, came[at:]
        if place + length > len(came):
            return kinds, came[at:]
        kinds.append(came[at] >> 4)
        at = place + length


def main() -> None:
    """Measures both."""
    parser = argparse.ArgumentParser(description="Measures what devices cost that are away.")
    parser.add_argument("--stentor", default="stentor", help="the program; a release build")
    parser.add_argument("--devices", type=int, default=1_000_000, help="how many are away; 0 leaves a part out, here and below")
    parser.add_argument("--messages", type=int, default=1_000, help="how many wait for the one that comes back; 100 to 1,000")
    parser.add_argument("--storm", type=int, default=2_000, help="how many come back at once; each is an open file here and in the server")
    parser.add_argument("--json", action="store_true", help="print one object")
    options = parser.parse_args()
    found: Dict[str, Any] = {}
    parts = (("campaign", campaign_to_all, options.devices), ("return", return_of_one, options.messages), ("storm", storm, options.storm))
    for name, measure, count in parts:
        if count == 0:
            continue
        with tempfile.TemporaryDirectory() as folder:
            server = Server(options.stentor, Path(folder))
            try:
                found[name] = measure(server, count)
            finally:
                end(server.process)
    found["load_average"] = os.getloadavg()[0]
    print(json.dumps(found) if options.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
