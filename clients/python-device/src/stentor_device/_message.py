"""A message as the device gets it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping, Optional


@dataclass(frozen=True)
class Message:
    """What the app has sent. A notification is for people, data is for the program; a message may have both."""

    id: str
    """The same each time the message comes."""
    notification: Optional[Mapping[str, Any]]
    data: Mapping[str, str]
    whole: Mapping[str, Any]
    """Everything that came, with `collapse_key`, `priority` and `sent_at` where they are."""

    @property
    def title(self) -> str:
        """Returns the notification's title, or nothing."""
        return str((self.notification or {}).get("title") or "")

    @property
    def body(self) -> str:
        """Returns the notification's text, or nothing."""
        return str((self.notification or {}).get("body") or "")


def message_of(text: str) -> Message:
    """Reads what the server sent; raises KeyError or ValueError for what is no message."""
    whole = json.loads(text)
    if not isinstance(whole, dict):
        raise ValueError("a message is no object")
    return message_with(whole)


def message_with(whole: Mapping[str, Any]) -> Message:
    """Returns the message of a record; raises KeyError where it has no id."""
    return Message(whole["id"], whole.get("notification"), whole.get("data") or {}, whole)
