"""The parts of the library by themselves: python -m unittest tests/parts.py."""

import base64
import http.client
import http.server
import io
import json
import stat
import tempfile
import threading
import time
import unittest
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, cast
from unittest import mock

from stentor_device import Backoff, Device, DeviceRemoved, MissingLibrary, _folder
from stentor_device._errors import OutboxFull, Unreachable
from stentor_device._folder import SEEN_MAX_COUNT, Folder, Memory
from stentor_device._keys import Keys, generated, opened
from stentor_device._message import message_of
from stentor_device._service import Service, Stream

JOINED = {"device": "dev_1", "token": "t", "secret": "s"}

# RFC 8291, appendix A.
UA_PRIVATE = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
UA_PUBLIC = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
BODY = base64.urlsafe_b64decode(
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
    "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


class FolderTest(unittest.TestCase):
    """What is on disk."""

    def setUp(self) -> None:
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.path = Path(kept.name) / "device"
        self.folder = Folder(self.path)

    def test_what_was_kept_is_remembered_and_only_its_owner_may_read_it(self) -> None:
        self.assertIsNone(self.folder.read())
        self.path.mkdir()
        (self.path / "device.draft").write_text("left behind")
        (self.path / "device.draft").chmod(0o644)
        own = Memory.of("http://localhost", JOINED)
        own.note_seen("msg_1")
        self.folder.keep(own)
        self.assertEqual(self.folder.read(), own)
        self.assertEqual(stat.S_IMODE((self.path / "device.json").stat().st_mode), 0o600)

    def test_what_a_later_version_has_written_is_read(self) -> None:
        self.folder.keep(Memory.of("http://localhost", JOINED))
        kept = json.loads((self.path / "device.json").read_text())
        (self.path / "device.json").write_text(json.dumps({**kept, "more": 1}))
        read = self.folder.read()
        self.assertEqual(read and read.token, "t")

    def test_a_memory_that_is_none_is_told(self) -> None:
        self.path.mkdir()
        for text in ("{", "[]", '{"token":"t"}'):
            (self.path / "device.json").write_text(text)
            with self.assertRaisesRegex(ValueError, "device.json cannot be read"):
                self.folder.read()

    def test_keys_are_remembered_and_without_what_opens_they_are_refused_by_what_to_install(self) -> None:
        keys = {"private": UA_PRIVATE, "auth": AUTH, "is_told": True}
        own = Memory.of("http://localhost", JOINED)
        own.keys = keys
        self.folder.keep(own.renewed(JOINED))
        read = self.folder.read()
        self.assertEqual(read and read.keys, keys)
        with mock.patch("stentor_device._keys.find_spec", return_value=None):
            with self.assertRaisesRegex(MissingLibrary, r"pip install 'stentor-device\[seal\]'"):
                Device(self.path, "http://localhost")
            with self.assertRaises(MissingLibrary):
                Device(self.path, "http://localhost", encrypt=True)

    def test_no_more_is_remembered_than_is_needed(self) -> None:
        own = Memory.of("http://localhost", JOINED)
        for number in range(SEEN_MAX_COUNT + 1):
            own.note_seen(str(number))
        self.assertEqual((len(own.seen), own.seen[0]), (SEEN_MAX_COUNT, "1"))

    def test_what_is_sent_waits_in_order_and_what_is_no_message_is_set_aside(self) -> None:
        names = [self.folder.put({"n": str(number)}, 60, None) for number in range(3)]
        self.assertEqual([path.stem for path in self.folder.waiting()], names)
        first = self.folder.message(self.folder.waiting()[0])
        self.assertEqual(first, {"message_id": names[0], "data": {"n": "0"}, "ttl_seconds": 60})
        (self.path / "outbox" / "0.json").write_text("{")
        self.assertIsNone(self.folder.message(self.path / "outbox" / "0.json"))
        self.assertEqual(len(self.folder.waiting()), 3)

    def test_a_name_that_leads_elsewhere_is_refused(self) -> None:
        for name in ("../x", ".x", "a/b", "a\0", "ä", "x" * 101):
            with self.assertRaises(ValueError):
                self.folder.put({}, None, name)

    def test_a_full_outbox_is_told(self) -> None:
        most, _folder.WAITING_MAX_COUNT = _folder.WAITING_MAX_COUNT, 2
        self.addCleanup(setattr, _folder, "WAITING_MAX_COUNT", most)
        self.folder.put({}, None, "a")
        self.folder.put({}, None, "b")
        with self.assertRaises(OutboxFull):
            self.folder.put({}, None, "c")


def read(text: bytes) -> List[object]:
    """Reads a stream to its end."""
    response = cast(http.client.HTTPResponse, io.BytesIO(text))
    events: List[object] = []
    try:
        events.extend(Stream(http.client.HTTPConnection("localhost"), None, response).events())
    except Unreachable:
        events.append("the end")
    return events


@unittest.skipUnless(find_spec("cryptography"), "cryptography is not installed")
class KeysTest(unittest.TestCase):
    """What is sealed for the device."""

    def setUp(self) -> None:
        self.keys = Keys(UA_PRIVATE, AUTH)

    def test_the_example_of_rfc_8291_is_opened(self) -> None:
        self.assertEqual(self.keys.public(), {"p256dh": UA_PUBLIC, "auth": AUTH})
        self.assertEqual(self.keys.open(BODY), b"When I grow up, I want to be a watermelon")

    def test_what_was_changed_cut_or_sealed_for_others_is_not(self) -> None:
        other = Keys.of(generated())
        wrong = [BODY[:place] for place in (0, 20, 86, len(BODY) - 1)]
        wrong += [BODY[:place] + bytes([BODY[place] ^ 1]) + BODY[place + 1 :] for place in (0, 30, 90)]
        for keys, body in [(other, BODY), *((self.keys, body) for body in wrong)]:
            with self.assertRaises(ValueError):
                keys.open(body)
        for kept in ({}, {"private": 1, "auth": AUTH}, {"private": "", "auth": AUTH}):
            with self.assertRaises(ValueError):
                Keys.of(kept)

    def test_what_a_sender_has_sealed_is_the_data(self) -> None:
        sealed = {"encoding": "aes128gcm", "body": base64.b64encode(BODY).decode(), "by": "sender"}
        clear = opened({"id": "msg_1", "priority": "high", "sealed": sealed}, self.keys)
        text = "When I grow up, I want to be a watermelon"
        self.assertEqual(clear, {"id": "msg_1", "priority": "high", "data": {"body": text}})
        with self.assertRaises(ValueError):
            opened({"id": "msg_1", "sealed": {**sealed, "by": "server"}}, self.keys)


class Network:
    """What answers in the server's place, or as the server does."""

    def __init__(self) -> None:
        network = self
        self.known: Dict[str, str] = {}
        self.joined = 0
        self.portal: Optional[bytes] = None
        self.told: Dict[str, Any] = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                basic = self.headers.get("Authorization", "").partition("Basic ")[2]
                token = base64.b64decode(basic).decode().partition(":")[0]
                if network.portal is not None:
                    self.say(401, network.portal)
                elif self.path.endswith("/devices"):
                    network.joined += 1
                    network.told = json.loads(body)
                    joined = {"device": f"dev_{network.joined}", "token": f"t{network.joined}", "secret": "s"}
                    network.known[joined["token"]] = joined["device"]
                    self.say(201, json.dumps(joined).encode())
                elif token in network.known:
                    self.say(503 if self.path.endswith("/events") else 200, b"{}")
                else:
                    problem = {"code": "unauthorized", "request_id": self.headers.get("X-Request-Id")}
                    self.say(401, json.dumps(problem).encode())

            do_POST = do_DELETE = do_GET

            def say(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class IdentityTest(unittest.TestCase):
    """Who the device is, whatever is said to it."""

    def setUp(self) -> None:
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.path = Path(kept.name) / "device"
        self.network = Network()
        self.addCleanup(self.network.server.server_close)
        self.addCleanup(self.network.server.shutdown)

    def device(self, key: Optional[str] = "sk_join", **told: Any) -> Device:
        device = Device(self.path, self.network.url, key, backoff=Backoff(0.01, 0.02), **told)
        thread = threading.Thread(target=device.run, daemon=True)
        thread.start()
        self.running = thread
        self.addCleanup(thread.join, 20)
        self.addCleanup(device.stop)
        return device

    def until(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + 20
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_a_stranger_who_says_401_changes_nothing(self) -> None:
        device = self.device()
        self.until(lambda: device.id)
        kept = (self.path / "device.json").read_bytes()
        forged = json.dumps({"code": "unauthorized", "request_id": "req_0", "detail": "x"}).encode()
        for portal in (b"<html>log in</html>", b"", b"{}", forged):
            for key in ("sk_join", None):
                self.network.portal = portal
                service, own = Service(self.network.url, None), Folder(self.path).read()
                assert own is not None
                with self.assertRaises(Unreachable):
                    service.show(own)
                other = self.device(key)
                time.sleep(0.1)
                self.assertEqual((self.path / "device.json").read_bytes(), kept)
                other.stop()
                self.network.portal = None
        self.assertEqual(self.network.joined, 1)

    def test_who_the_device_was_is_tried_again_and_comes_back(self) -> None:
        device = self.device()
        self.until(lambda: device.id == "dev_1" and self.network.known)
        self.network.known.clear()
        self.until(lambda: device.id == "dev_2")
        self.assertTrue((self.path / "former-dev_1.json").exists(), "it is set aside, not erased")
        self.network.known = {"t1": "dev_1"}
        self.until(lambda: device.id == "dev_1")
        self.assertEqual(self.network.joined, 2)

    def test_without_a_key_the_device_goes_on_trying_for_thirty_days(self) -> None:
        folder = Folder(self.path)
        folder.keep(Memory.of(self.network.url, JOINED))
        device = self.device(None)
        self.until(lambda: (folder.read() or Memory.of("", JOINED)).refused_since)
        self.network.known = {"t": "dev_1"}
        time.sleep(0.1)
        self.assertEqual(device.id, "dev_1")
        device.stop()
        # It would write the same file.
        self.running.join(20)
        self.network.known = {}
        own = Memory.of(self.network.url, JOINED)
        own.refused_since = int(time.time()) - _folder.FORMER_LIFE_SECONDS - 5
        folder.keep(own)
        with self.assertRaises(DeviceRemoved):
            Device(self.path, self.network.url, backoff=Backoff(0.01, 0.02)).run()

    def test_a_proof_is_fetched_when_the_device_registers(self) -> None:
        proof = mock.Mock(return_value="signed")
        device = self.device(user="alice", proof=proof)
        self.until(lambda: device.id)
        proof.assert_called_once_with()
        self.assertEqual((self.network.told["user"], self.network.told["proof"]), ("alice", "signed"))


class OthersTest(unittest.TestCase):
    """What needs no disk."""

    def test_waits_double_and_are_spread(self) -> None:
        backoff = Backoff(first_seconds=1.0, last_seconds=300.0)
        for failures, least in ((1, 1.0), (2, 2.0), (5, 16.0), (9, 256.0), (10, 300.0), (5_000, 300.0)):
            waits = {backoff.wait_seconds(failures) for _ in range(50)}
            self.assertTrue(all(least <= wait <= least * 1.5 for wait in waits) and len(waits) > 1, failures)

    def test_a_stream_is_read_as_it_was_written_and_its_end_is_told(self) -> None:
        text = b':\n\nevent: message\nid: msg_1\ndata: {"id":"msg_1"}\n\nevent:deleted\ndata:7\n\n'
        self.assertEqual(read(text), [None, ("message", '{"id":"msg_1"}'), ("deleted", "7"), "the end"])

    def test_a_line_without_end_is_refused(self) -> None:
        self.assertEqual(read(b"data: " + b"x" * 2_000_000 + b"\n\n"), ["the end"])

    def test_a_message_has_what_was_sent(self) -> None:
        message = message_of('{"id":"msg_1","notification":{"title":"Hi"},"data":{"k":"v"}}')
        self.assertEqual((message.title, message.body, message.data), ("Hi", "", {"k": "v"}))
        for text in ("[]", "{", "{}"):
            with self.assertRaises((KeyError, ValueError)):
                message_of(text)

    def test_an_address_that_is_none_is_refused(self) -> None:
        for server in ("push.example.org", "ftp://push.example.org", "http://"):
            with self.assertRaises(ValueError):
                Service(server, None)


if __name__ == "__main__":
    unittest.main()
