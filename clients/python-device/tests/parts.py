"""The parts of the library by themselves: python -m unittest tests/parts.py."""

import http.client
import io
import json
import stat
import tempfile
import unittest
from pathlib import Path
from typing import List, cast

from stentor_device import Backoff, _folder
from stentor_device._errors import OutboxFull, Unreachable
from stentor_device._folder import SEEN_MAX_COUNT, Folder, Memory
from stentor_device._message import message_of
from stentor_device._service import Service, Stream

JOINED = {"device": "dev_1", "token": "t", "secret": "s"}


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

    def test_a_device_that_gets_sealed_messages_is_refused(self) -> None:
        self.folder.keep(Memory.of("http://localhost", JOINED))
        kept = json.loads((self.path / "device.json").read_text())
        (self.path / "device.json").write_text(json.dumps({**kept, "keys": {"private": "x"}}))
        with self.assertRaisesRegex(ValueError, "has keys"):
            self.folder.read()

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
