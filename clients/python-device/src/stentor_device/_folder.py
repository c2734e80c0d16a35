"""What a device remembers: the files of `stentor device run`, so that a folder of the one serves the other."""

from __future__ import annotations

import json
import os
import re
import threading
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._errors import OutboxFull

SEEN_MAX_COUNT = 1_024
"""Messages that are remembered, so that one that comes again is recognised: more than a server leaves unconfirmed."""
FORMER_LIFE_SECONDS = 30 * 24 * 3_600
"""How long it is remembered who the device was, after the server has said that it does not know it."""
FORMER_MAX_COUNT = 8
WAITING_MAX_COUNT = 10_000
"""Messages that wait at most: a device without a connection must not fill its disk."""
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


@dataclass
class Memory:
    """Who a device is, and what it has got."""

    server: str
    device: str
    token: str
    secret: str
    token_since: int
    seen: List[str] = field(default_factory=list)
    told_token: str = ""
    """The token that the program was told last."""
    keys: Optional[Dict[str, Any]] = field(default=None, repr=False)
    """What opens messages that are sealed for the device, and whether the server was told of it."""
    refused_since: int = 0
    """When the server first said that it does not know the device; 0 where it knows it."""

    def is_over(self) -> bool:
        """Returns whether the server has not known the device for so long that it never will."""
        return 0 < self.refused_since < time.time() - FORMER_LIFE_SECONDS

    @classmethod
    def of(cls, server: str, joined: Mapping[str, Any]) -> Memory:
        """Starts with what a registration gave."""
        return cls(server, joined["device"], joined["token"], joined["secret"], int(time.time()))

    def renewed(self, joined: Mapping[str, Any]) -> Memory:
        """Returns it with another token."""
        values = {**asdict(self), "token": joined["token"], "secret": joined["secret"]}
        return Memory(**{**values, "token_since": int(time.time())})

    def note_seen(self, message: str) -> None:
        """Notes a message; the oldest is forgotten."""
        self.seen = [*self.seen[1 - SEEN_MAX_COUNT :], message]


class Folder:
    """The files of a device. Each is written whole or not at all, and only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outbox = path / "outbox"
        # Two threads may put messages at once, and the counting must be theirs alone.
        self._lock = threading.Lock()

    def read(self) -> Optional[Memory]:
        """Reads what is remembered; None where no device has run yet. Raises ValueError for a file that is something else."""
        file = self._path / "device.json"
        try:
            return Folder._memory(file)
        except FileNotFoundError:
            return None
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"{file} cannot be read: remove it to register again") from error

    def keep(self, memory: Memory) -> None:
        """Keeps it: on disk when this returns."""
        kept = {name: value for name, value in asdict(memory).items() if value is not None}
        _write(self._path / "device.json", kept)

    def keep_former(self, memory: Memory) -> None:
        """Remembers under another name who the device was; what waits to be sent stays. The oldest ones are kept."""
        name = re.sub(r"[^A-Za-z0-9_]", "", memory.device)
        if len(self.former()) < FORMER_MAX_COUNT:
            _write(self._path / f"former-{name}.json", asdict(memory))
        (self._path / "device.json").unlink()

    def former(self) -> List[Tuple[Path, Memory]]:
        """Lists who the device was, the oldest first; what is over is removed."""
        found = []
        for path in self._path.glob("former-*.json"):
            try:
                memory = Folder._memory(path)
            except (AttributeError, OSError, TypeError, ValueError):
                continue
            if memory.is_over():
                path.unlink()
            else:
                found.append((path, memory))
        return sorted(found, key=lambda one: one[1].refused_since)

    @staticmethod
    def _memory(file: Path) -> Memory:
        kept = json.loads(file.read_bytes())
        return Memory(**{name: kept[name] for name in Memory.__dataclass_fields__ if name in kept})

    def put(self, data: Mapping[str, Any], ttl_seconds: Optional[int], message_id: Optional[str]) -> str:
        """Puts a message into the outbox: on disk when this returns. Returns its name."""
        name = message_id or f"{time.time_ns():016x}{uuid.uuid4().hex[:8]}"
        if not _NAME.fullmatch(name):
            raise ValueError("message_id must be 1 to 100 letters, digits, `_`, `-` and `.`, and not begin with a dot")
        message: Dict[str, Any] = {"message_id": name, "data": dict(data)}
        if ttl_seconds is not None:
            message["ttl_seconds"] = ttl_seconds
        with self._lock:
            if len(self.waiting()) >= WAITING_MAX_COUNT:
                raise OutboxFull(f"{WAITING_MAX_COUNT} messages wait already")
            _write(self._outbox / f"{name}.json", message)
        return name

    def waiting(self) -> List[Path]:
        """Lists what waits to be sent, by name."""
        return sorted(self._outbox.glob("*.json"))

    @staticmethod
    def message(path: Path) -> Optional[Dict[str, Any]]:
        """Reads a message that waits; what is none is set aside, so that it holds nothing else up."""
        try:
            message = json.loads(path.read_bytes())
        except ValueError:
            message = None
        if isinstance(message, dict):
            return message
        Folder.set_aside(path)
        return None

    @staticmethod
    def set_aside(path: Path) -> None:
        """Keeps a message that the server will never take where it is not sent again."""
        path.rename(path.with_suffix(".refused"))


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(".draft")
    # What another run left behind may have another mode.
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(json.dumps(value).encode())
        file.flush()
        # The bytes before the name: after a power cut the name must not lead to nothing.
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
