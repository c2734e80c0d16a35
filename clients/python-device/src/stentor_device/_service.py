"""The server as a device sees it."""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import socket
import ssl
from typing import Any, Dict, Iterator, Optional, Tuple, Union
from urllib.parse import urlsplit

from ._errors import Refused, UnknownDevice, Unreachable
from ._folder import Memory

ANSWER_LIMIT_SECONDS = 60.0
SILENCE_LIMIT_SECONDS = 100.0
"""The server sends a comment every 30 seconds: after three that are missing the line is dead."""
EVENT_MAX_BYTES = 1024 * 1024
_PASSING = (408, 409, 429)

Connection = Union[http.client.HTTPConnection, http.client.HTTPSConnection]


class Service:
    """Asks the server; every request but the stream has a connection of its own."""

    def __init__(self, server: str, context: Optional[ssl.SSLContext]) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("server must be like https://push.example.org")
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/") + "/gateway/v1/"
        self._context = context or ssl.create_default_context()

    def join(self, key: str, told: Dict[str, Any]) -> Dict[str, Any]:
        """Registers the device."""
        return _joined(self._answer("POST", "devices", f"Bearer {key}", told))

    def renew(self, own: Memory) -> Dict[str, Any]:
        """Asks for another token; the present one is good until that is first used."""
        return _joined(self._answer("POST", "device/token", _proof(own), None))

    def show(self, own: Memory) -> None:
        """Asks whether the server knows the device; raises UnknownDevice where it does not."""
        self._answer("GET", "device", _proof(own), None)

    def withdraw(self, own: Memory) -> None:
        """Removes a device that nobody is any more."""
        nonce, status, text = self._exchange("DELETE", "device", _proof(own), None)
        if not 200 <= status < 300:
            raise self._refusal(status, text, nonce)

    def confirm(self, own: Memory, message: str) -> None:
        """Confirms a message; that is on the server's disk when this returns."""
        self._answer("POST", "receipts", _proof(own), {"messages": [message]})

    def send(self, own: Memory, message: Dict[str, Any]) -> None:
        """Sends a message to the app; it is on the server's disk when this returns."""
        self._answer("POST", "upstream", _proof(own), message)

    def put_keys(self, own: Memory, keys: Dict[str, str]) -> None:
        """Has the server seal for the device from now on."""
        nonce, status, text = self._exchange("PUT", "device/keys", _proof(own), keys)
        if not 200 <= status < 300:
            raise self._refusal(status, text, nonce)

    def events(self, own: Memory) -> Stream:
        """Opens the stream of messages."""
        connection = self._connect(SILENCE_LIMIT_SECONDS)
        try:
            nonce = secrets.token_hex(16)
            headers = {"Authorization": _proof(own), "X-Request-Id": nonce}
            connection.request("GET", self._prefix + "events", headers=headers)
            # The response takes it over where the connection is to be closed after it.
            own_socket = connection.sock
            response = connection.getresponse()
            if response.status != 200:
                raise self._refusal(response.status, response.read(), nonce)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable(str(error)) from error
        except BaseException:
            connection.close()
            raise
        return Stream(connection, own_socket, response)

    def _connect(self, seconds: float) -> Connection:
        if self._is_secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=seconds)

    def _exchange(
        self, method: str, path: str, proof: str, body: Optional[Dict[str, Any]]
    ) -> Tuple[str, int, bytes]:
        nonce = secrets.token_hex(16)
        headers = {"Authorization": proof, "Content-Type": "application/json", "X-Request-Id": nonce}
        encoded = None if body is None else json.dumps(body).encode()
        connection = self._connect(ANSWER_LIMIT_SECONDS)
        try:
            connection.request(method, self._prefix + path, encoded, headers)
            response = connection.getresponse()
            return nonce, response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(str(error)) from error
        finally:
            connection.close()

    def _answer(self, method: str, path: str, proof: str, body: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        nonce, status, text = self._exchange(method, path, proof, body)
        if not 200 <= status < 300:
            raise self._refusal(status, text, nonce)
        answer = _object(text)
        if answer is None:
            # A network that wants a login answers so for everybody: nothing was done.
            raise Unreachable("the answer is not the server's")
        return answer

    def _refusal(self, status: int, text: bytes, nonce: str) -> Exception:
        """Returns what a refusal means: that the device is not known, that it is for good, or that it may pass."""
        problem = _object(text) or {}
        detail = f"{status}: {problem.get('detail', '')}"
        # Whoever stands between may answer 401 too: only the server's own word counts, and it shows that it has read the request.
        is_its_own = "code" in problem and (self._is_secure or problem.get("request_id") == nonce)
        if not is_its_own:
            return Unreachable(f"{status}, and not by the server itself")
        if status == 401:
            return UnknownDevice(detail)
        if 400 <= status < 500 and status not in _PASSING:
            return Refused(detail)
        return Unreachable(detail)


class Stream:
    """Server-Sent Events (WHATWG HTML, 9.2), as far as the gateway writes them: one line of data each."""

    def __init__(
        self, connection: Connection, own_socket: Optional[socket.socket], response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._socket = own_socket
        self._response = response

    def events(self) -> Iterator[Optional[Tuple[str, str]]]:
        """Yields each event's name and data, and None for a comment."""
        name, data = "", ""
        for line in self._lines():
            if line == "":
                yield (name, data) if name else None
                name, data = "", ""
            elif line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data = line[5:].strip()

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                line = self._response.readline(EVENT_MAX_BYTES)
            except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
                # Closed by another thread, it is no file any more.
                raise Unreachable(f"the connection broke: {error}") from error
            if not line.endswith(b"\n"):
                raise Unreachable("the server ended the connection")
            yield line.decode("utf-8", "replace").rstrip("\r\n")

    def close(self) -> None:
        """Ends the stream; whoever reads it is woken."""
        try:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._connection.close()


def _proof(own: Memory) -> str:
    return "Basic " + base64.b64encode(f"{own.token}:{own.secret}".encode()).decode()


def _object(text: bytes) -> Optional[Dict[str, Any]]:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _joined(answer: Dict[str, Any]) -> Dict[str, Any]:
    """Returns what a device proves itself with, if it is all there."""
    if not all(isinstance(answer.get(name), str) for name in ("device", "token", "secret")):
        raise Unreachable("the answer is not the server's")
    return answer
