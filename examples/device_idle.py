"""Measures what an idle device costs: its bytes on the wire for a heartbeat, by protocol, and the memory of `stentor device run`.

    python3 examples/device_idle.py --stentor target/release/stentor [--heartbeats 3] [--json]

It starts a server of its own on loopback. Each device connects through a relay, which counts what it hands on and asks the kernel
(TCP_INFO) how many segments the device's connection has had in both directions, those that only acknowledge included. A byte on the
wire is one of IPv4, TCP with timestamps (52 bytes a segment) or of what is above; Ethernet, TLS and repeats by loss are not in it.
Hours are made of heartbeats by multiplying. Linux, Python 3.9; nothing else.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import select
import socket
import struct
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

HEADER_BYTES = 20 + 20 + 12
"""IPv4, TCP, and TCP's timestamps."""
TCP_INFO_SEGMENTS = struct.Struct("=II")
TCP_INFO_SEGMENTS_AT = 136
"""Where `tcpi_segs_out` and `tcpi_segs_in` are (linux/tcp.h, since Linux 4.2)."""
SETTLE_SECONDS = 2.0
"""Longer than an acknowledgement is held back (40 ms), and than Linux remembers a connection as busy (its RTO): then it acknowledges at
once, as it does on a connection that was idle for minutes."""
TLS_RECORD_BYTES = 22
"""What TLS 1.3 adds to a record: its header, its type and its tag (RFC 8446, 5.2)."""


@dataclass(frozen=True)
class Counts:
    """What has gone over a connection, as the device sees it."""

    down_bytes: int
    up_bytes: int
    down_segments: int
    up_segments: int

    def since(self, before: Counts) -> Counts:
        """Returns what has gone since then."""
        pairs = zip(self.__dict__.values(), before.__dict__.values())
        return Counts(*(now - then for now, then in pairs))


class Relay:
    """Hands one connection after the other on to a port, and counts the newest."""

    def __init__(self, port: int) -> None:
        self._behind = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._connections: List[List[Any]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def counts(self, index: int) -> Counts:
        """Returns what has gone over a connection so far; the first one is 0."""
        device, down, up = self._connections[index]
        info = device.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        segments_out, segments_in = TCP_INFO_SEGMENTS.unpack_from(info, TCP_INFO_SEGMENTS_AT)
        return Counts(down, up, segments_out, segments_in)

    def _accept(self) -> None:
        while True:
            device, _ = self._listener.accept()
            server = socket.create_connection(("127.0.0.1", self._behind))
            for one in (device, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = [device, 0, 0]
            self._connections.append(connection)
            threading.Thread(target=self._hand_on, args=(device, server, connection), daemon=True).start()

    @staticmethod
    def _hand_on(device: socket.socket, server: socket.socket, connection: List[Any]) -> None:
        while True:
            for one in select.select([device, server], [], [])[0]:
                piece = one.recv(65_536)
                if not piece:
                    device.close()
                    server.close()
                    return
                other, place = (device, 1) if one is server else (server, 2)
                other.sendall(piece)
                connection[place] += len(piece)


class Server:
    """A server with an app, a key for its devices, and all ports for devices."""

    def __init__(self, stentor: str, folder: Path) -> None:
        self.stentor, self.folder = stentor, folder
        config = folder / "stentor.toml"
        config.write_text('[gateway]\nmcs_listen = "127.0.0.1:0"\nmqtt_listen = "127.0.0.1:0"\n')
        self.start()
        try:
            self.app = self.run("app", "create", "idle")["id"]
            self.key = self.run("app", "key", "create", "--name", "devices", "--scope", "join")["secret"]
        except BaseException:
            end(self.process)
            raise

    def start(self) -> None:
        """Starts it on its folder."""
        data, config = str(self.folder / "data"), str(self.folder / "stentor.toml")
        command = [self.stentor, "serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--config", config, "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        try:
            self.url = json.loads(self.process.stdout.readline())["url"]
        except BaseException:
            end(self.process)
            raise
        self.port = int(self.url.rsplit(":", 1)[1])

    def run(self, *arguments: str) -> Any:
        """Runs a command of ours."""
        place = ["--server", self.url, "--data-dir", str(self.folder / "data"), "--json"]
        told = subprocess.run([self.stentor, *arguments, *place], check=True, stdout=subprocess.PIPE)
        return json.loads(told.stdout)

    def device_port(self, name: str) -> int:
        """Returns the port of a protocol."""
        return int((self.folder / "data" / f"{name}.addr").read_text().strip().rsplit(":", 1)[1])

    def post(self, path: str, body: bytes, headers: Dict[str, str]) -> bytes:
        """Asks the API."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        text = response.read()
        assert response.status < 300, (path, response.status, text)
        return text

    def join(self) -> Dict[str, str]:
        """Registers a device."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        joined: Dict[str, str] = json.loads(self.post("/gateway/v1/devices", b"{}", headers))
        return joined


# === Devices: each connects, and returns what has one heartbeat pass ===


def stream(server: Server, relay: Relay) -> Tuple[Callable[[], None], Optional[subprocess.Popen[bytes]]]:
    """The stream of events of `stentor device run`: the server writes a comment every 30 seconds."""
    folder = str(server.folder / "device")
    url = f"http://127.0.0.1:{relay.port}"
    command = [server.stentor, "device", "run", "--server", url, "--key", server.key, "--folder", folder, "--no-desktop"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # The registration is the first request of the connection that the stream takes over.
        wait_until(lambda: has_stream(server), "the stream")
    except BaseException:
        end(process)
        raise

    def heartbeat() -> None:
        before = relay.counts(0).down_bytes
        wait_until(lambda: relay.counts(0).down_bytes > before, "a heartbeat", 100.0)

    return heartbeat, process


def has_stream(server: Server) -> bool:
    """Finds out whether a device is connected."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    root = (server.folder / "data" / "root.key").read_text().strip()
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {root}"})
    text = connection.getresponse().read().decode()
    return 'stentor_gateway_sessions{protocol="stream"} 1' in text


def mqtt(server: Server, relay: Relay) -> Tuple[Callable[[], None], None]:
    """MQTT 3.1.1: the device sends PINGREQ and gets PINGRESP."""
    joined = server.join()
    device = socket.create_connection(("127.0.0.1", relay.port))
    fields = [b"idle", joined["token"].encode(), joined["secret"].encode()]
    body = b"\x00\x04MQTT\x04\xc2\x00\x3c" + b"".join(struct.pack(">H", len(one)) + one for one in fields)
    device.sendall(b"\x10" + varint(len(body)) + body)
    assert device.recv(4) == b"\x20\x02\x00\x00"
    device.sendall(b"\x82\x0f\x00\x01\x00\x0amessages/#\x01")
    assert device.recv(5) == b"\x90\x03\x00\x01\x01"

    def heartbeat() -> None:
        device.sendall(b"\xc0\x00")
        assert device.recv(4) == b"\xd0\x00"

    return heartbeat, None


def mcs(server: Server, relay: Relay) -> Tuple[Callable[[], None], None]:
    """MCS: the server sends a ping and gets an acknowledgement; here the device asks for one every five seconds."""
    reply = fields_of(server.post("/checkin", b"", {"Content-Type": "application/x-protobuf"}))
    android, security = (str(struct.unpack("<Q", reply[number])[0]).encode() for number in (7, 8))
    texts = {1: b"idle-1", 2: b"mcs.android.com", 3: android, 4: android, 5: security}
    login = b"".join(bytes([number << 3 | 2]) + varint(len(text)) + text for number, text in texts.items())
    login += b"\x6a\x07\x0a\x00\x10\x00\x18\x88\x27"  # heartbeat_stat: 5,000 ms
    login += b"\x80\x01\x02"  # auth_service: by android id
    device = socket.create_connection(("127.0.0.1", relay.port))
    device.sendall(b"\x29\x02" + varint(len(login)) + login)
    assert device.recv(2) == b"\x29\x03", "the login is refused"
    device.recv(4_096)
    return answering(device, b"\x00", b"\x01\x00"), None


def autopush(server: Server, relay: Relay) -> Tuple[Callable[[], None], None]:
    """autopush's WebSocket: the server sends a ping every 300 seconds and gets a pong."""
    device = socket.create_connection(("127.0.0.1", relay.port))
    key = base64.b64encode(os.urandom(16)).decode()
    head = f"GET /gateway/v1/autopush/{server.app} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: push-notification\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    device.sendall(head.encode())
    assert b" 101 " in device.recv(4_096)
    device.sendall(frame(0x81, b'{"messageType":"hello","use_webpush":true}'))
    assert b"uaid" in device.recv(4_096)
    return answering(device, b"\x89\x00", frame(0x8A, b"")), None


def answering(device: socket.socket, ping: bytes, pong: bytes) -> Callable[[], None]:
    """Returns what waits for a ping and answers it."""

    def heartbeat() -> None:
        asked = device.recv(4_096)
        assert asked.startswith(ping), asked
        device.sendall(pong)

    return heartbeat


def frame(kind: int, text: bytes) -> bytes:
    """Returns a masked frame of a WebSocket (RFC 6455, 5.2); its text is short."""
    mask = os.urandom(4)
    body = bytes(byte ^ mask[index % 4] for index, byte in enumerate(text))
    return bytes([kind, 0x80 | len(text)]) + mask + body


def varint(number: int) -> bytes:
    """Writes a length as MQTT and Protocol Buffers do."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def fields_of(text: bytes) -> Dict[int, bytes]:
    """Reads the fields of a message of Protocol Buffers: numbers of 64 bits as their bytes."""
    fields: Dict[int, bytes] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = text[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(text):
        tag = number()
        if tag & 7 == 0:
            number()
            continue
        length = 8 if tag & 7 == 1 else number()
        fields[tag >> 3] = text[at : at + length]
        at += length
    return fields


# === Measuring ===


@dataclass(frozen=True)
class Protocol:
    """How a protocol is measured, and how often a heartbeat of it comes."""

    name: str
    connect: Callable[[Server, Relay], Tuple[Callable[[], None], Optional[subprocess.Popen[bytes]]]]
    port: Callable[[Server], int]
    interval_seconds: int
    whose: str
    records: int
    """Records of TLS in a heartbeat."""


PROTOCOLS = [
    Protocol("stream", stream, lambda server: server.port, 30, "the server's", 1),
    Protocol("mqtt", mqtt, lambda server: server.device_port("mqtt"), 60, "mosquitto's; up to 1,800 are allowed", 2),
    Protocol("mcs", mcs, lambda server: server.device_port("mcs"), 240, "the server's; a device may ask for less", 2),
    Protocol("autopush", autopush, lambda server: server.port, 300, "the server's", 2),
]


def measured(server: Server, protocol: Protocol, heartbeats: int) -> Dict[str, Any]:
    """Measures one protocol, and the memory of the process where there is one."""
    relay = Relay(protocol.port(server))
    heartbeat, process = protocol.connect(server, relay)
    try:
        time.sleep(SETTLE_SECONDS)
        before = relay.counts(0)
        for _ in range(heartbeats):
            heartbeat()
            # The acknowledgement of this one must not go with the next one.
            time.sleep(SETTLE_SECONDS)
        gone = relay.counts(0).since(before)
        memory = resident(process.pid) if process else None
    finally:
        if process:
            end(process)
    return row(protocol, heartbeats, gone, memory)


def row(protocol: Protocol, heartbeats: int, gone: Counts, memory: Optional[Dict[str, int]]) -> Dict[str, Any]:
    """Returns what was measured and what follows from it."""
    down = gone.down_bytes + gone.down_segments * HEADER_BYTES
    up = gone.up_bytes + gone.up_segments * HEADER_BYTES
    each = (down + up) / heartbeats
    hour = 3_600 / protocol.interval_seconds
    found: Dict[str, Any] = {
        "protocol": protocol.name,
        "heartbeats": heartbeats,
        "segments": [gone.down_segments, gone.up_segments],
        "payload_bytes": [gone.down_bytes, gone.up_bytes],
        "wire_bytes": [down, up],
        "bytes_per_heartbeat": round(each, 1),
        "interval_seconds": protocol.interval_seconds,
        "interval_is": protocol.whose,
        "bytes_per_hour": round(each * hour),
        "bytes_per_hour_with_tls": round((each + protocol.records * TLS_RECORD_BYTES) * hour),
    }
    return found if memory is None else {**found, "resident_bytes": memory}


def resident(process: int) -> Dict[str, int]:
    """Returns the resident memory of a process: all, and what is its own."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[name].split()[0]) * 1_024 for name in ("VmRSS", "RssAnon", "RssFile")}


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process of ours."""
    process.kill()
    process.wait()


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Waits until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise SystemExit(f"{what} does not come")
        time.sleep(0.02)


def main() -> None:
    """Measures all, or those that are named."""
    parser = argparse.ArgumentParser(description="Measures what an idle device costs.")
    parser.add_argument("--stentor", default="stentor", help="the program; a release build")
    parser.add_argument("--heartbeats", type=int, default=3, help="how many are counted; three last 17 minutes")
    parser.add_argument("--only", choices=[one.name for one in PROTOCOLS], help="one protocol alone")
    parser.add_argument("--json", action="store_true", help="print one object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.stentor, Path(folder))
        try:
            chosen = [one for one in PROTOCOLS if options.only in (None, one.name)]
            rows = [measured(server, one, options.heartbeats) for one in chosen]
        finally:
            end(server.process)
    if options.json:
        print(json.dumps({"rows": rows, "kernel": os.uname().release, "header_bytes": HEADER_BYTES}))
        return
    for one in rows:
        line = f"{one['protocol']:9} {one['bytes_per_heartbeat']:6} bytes a heartbeat, one in {one['interval_seconds']:3} s:"
        print(f"{line} {one['bytes_per_hour']:6} bytes an hour, {one['bytes_per_hour_with_tls']:6} with TLS 1.3")
        if "resident_bytes" in one:
            print("          resident: " + ", ".join(f"{name} {size}" for name, size in one["resident_bytes"].items()))


if __name__ == "__main__":
    main()
