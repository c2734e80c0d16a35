"""Requests to the control port of an emulator."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

# Longer than the longest wait for a message.
REPLY_SECONDS_MAX = 60.0


class EmulatorError(Exception):
    """An emulator that cannot start, has ended or refuses a request."""


def ask(control: str, method: str, path: str, body: Any = None) -> Any:
    """Returns the reply to a request. Raises OSError or HTTPException where the control port is gone."""
    connection = http.client.HTTPConnection(urlsplit(control).netloc, timeout=REPLY_SECONDS_MAX)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        response = connection.getresponse()
        reply = json.loads(response.read())
    finally:
        connection.close()
    if response.status != 200:
        raise EmulatorError(f"the emulator refuses {method} {path}: {reply.get('error', reply)}")
    return reply
