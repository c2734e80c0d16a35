"""What the generated operations stand on: a call, how it is sent, and how its answer is read."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Dict, Mapping, Optional, Tuple, Union
from urllib.parse import quote

import httpx

from ._problem import ConnectionFailed, Problem
from ._retries import Retries
from ._version import VERSION

_SAFE_TO_REPEAT = ("GET", "PUT", "PATCH", "DELETE")
_NO_CONTENT = 204


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"


UNSET = Unset.UNSET
"""What is not given: None is something else, it clears a field."""


@dataclass(frozen=True)
class Call:
    """One request as an operation makes it."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Optional[Dict[str, Any]] = None
    lines: Union[str, bytes, None] = None
    content_type: str = "application/json"
    has_key: bool = False
    """Whether an idempotency key makes repeating harmless."""
    idempotency_key: Optional[str] = None

    @property
    def is_repeatable(self) -> bool:
        """Returns whether doing it twice comes to the same as once."""
        return self.has_key or self.method in _SAFE_TO_REPEAT


def given(values: Dict[str, Any]) -> Dict[str, Any]:
    """Returns what was given, without what is unset."""
    return {name: value for name, value in values.items() if value is not UNSET}


def address(path: str, **subject: str) -> str:
    """Puts names into a path.

    Raises ValueError for a name that a path cannot hold: an empty one, `.` and `..` would be another address.
    """
    for name, value in subject.items():
        if value in ("", ".", ".."):
            raise ValueError(f"{value!r} cannot stand in an address as {name}")
    return path.format(**{name: quote(value, safe="") for name, value in subject.items()})


class _Parts:
    """What both transports share: everything but waiting."""

    def __init__(self, url: str, key: Optional[str], app: Optional[str], retries: Retries) -> None:
        self.url = url.rstrip("/")
        self.retries = retries
        self.headers = {"Accept": "application/json", "User-Agent": f"stentor-python/{VERSION}"}
        if key is not None:
            self.headers["Authorization"] = f"Bearer {key}"
        if app is not None:
            self.headers["X-Stentor-App"] = app

    def request(self, call: Call) -> Dict[str, Any]:
        """Returns what httpx is asked for; built once, so that every attempt carries the same idempotency key."""
        headers = dict(self.headers)
        content: Union[str, bytes, None] = call.lines
        if call.body is not None:
            content = json.dumps(call.body, ensure_ascii=False, allow_nan=False).encode()
        if content is not None:
            headers["Content-Type"] = call.content_type
        if call.has_key:
            headers["Idempotency-Key"] = call.idempotency_key or str(uuid.uuid4())
        params = {name: _text(value) for name, value in call.query.items()}
        url = self.url + call.path
        return {"method": call.method, "url": url, "params": params, "headers": headers, "content": content}

    def wait_seconds(self, attempts: int, failure: Union[Problem, ConnectionFailed], call: Call) -> float:
        """Returns how long to wait before the next attempt, or raises the failure."""
        wait = self.retries.wait_seconds(attempts, failure, call.is_repeatable)
        if wait is None:
            raise failure
        return wait


class Transport:
    """Sends calls and waits for each."""

    def __init__(
        self, url: str, key: Optional[str], app: Optional[str], retries: Retries, http: httpx.Client
    ) -> None:
        self._parts = _Parts(url, key, app, retries)
        self._http = http

    def call(self, call: Call) -> Any:
        """Returns what is replied; raises Problem or ConnectionFailed."""
        request = self._parts.request(call)
        attempts = 0
        while True:
            attempts += 1
            try:
                reply, failure = _read(self._http.request(**request))
            except httpx.TransportError as error:
                reply, failure = None, _failed(error)
            if failure is None:
                return reply
            time.sleep(self._parts.wait_seconds(attempts, failure, call))

    def close(self) -> None:
        """Closes all connections."""
        self._http.close()


class AsyncTransport:
    """Sends calls for asyncio."""

    def __init__(
        self, url: str, key: Optional[str], app: Optional[str], retries: Retries, http: httpx.AsyncClient
    ) -> None:
        self._parts = _Parts(url, key, app, retries)
        self._http = http

    async def call(self, call: Call) -> Any:
        """Returns what is replied; raises Problem or ConnectionFailed."""
        request = self._parts.request(call)
        attempts = 0
        while True:
            attempts += 1
            try:
                reply, failure = _read(await self._http.request(**request))
            except httpx.TransportError as error:
                reply, failure = None, _failed(error)
            if failure is None:
                return reply
            await asyncio.sleep(self._parts.wait_seconds(attempts, failure, call))

    async def close(self) -> None:
        """Closes all connections."""
        await self._http.aclose()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _read(response: httpx.Response) -> Tuple[Any, Union[Problem, ConnectionFailed, None]]:
    """Returns the reply, or why there is none."""
    if not response.is_success:
        return None, _problem(response)
    if response.status_code == _NO_CONTENT or not response.content:
        return None, None
    if not response.headers.get("Content-Type", "").startswith("application/json"):
        return response.text, None
    try:
        return response.json(), None
    except ValueError:
        return None, ConnectionFailed("the answer is not JSON", was_sent=True)


def _problem(response: httpx.Response) -> Problem:
    try:
        body = response.json()
    except ValueError:
        body = {}
    retry_after = _seconds(response.headers.get("Retry-After"))
    return Problem(response.status_code, body if isinstance(body, dict) else {}, retry_after)


def _seconds(retry_after: Optional[str]) -> Optional[float]:
    """Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _failed(error: httpx.TransportError) -> ConnectionFailed:
    # The words of the error name the host at most; the request with its key is not among them.
    never_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
    return ConnectionFailed(f"{type(error).__name__}: {error}", was_sent=not never_sent)
