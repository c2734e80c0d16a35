"""A way to the emulator for clients with built-in addresses."""

from __future__ import annotations

import itertools
import os
import socket
from contextlib import contextmanager
from typing import Any, Collection, Iterator, Tuple

# The variables by which requests, and OpenSSL with it httpx and asyncio, find the authorities that they trust.
AUTHORITY_VARIABLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")

# Addresses for documentation (RFC 5737), where nobody listens: one stands for each redirection until a socket connects.
_numbers = itertools.cycle(range(1, 255))


@contextmanager
def redirected(hosts: Collection[str], address: Tuple[str, int], ca_file: str) -> Iterator[None]:
    """Leads connections of this process to these hosts to another address, and makes this process trust its authority alone."""
    stand_in = f"192.0.2.{next(_numbers)}"
    resolve, connect, connect_ex = socket.getaddrinfo, socket.socket.connect, socket.socket.connect_ex
    before = {variable: os.environ.get(variable) for variable in AUTHORITY_VARIABLES}

    def resolve_here(host: Any, *rest: Any, **named: Any) -> Any:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        return resolve(stand_in if name in hosts else host, *rest, **named)

    def led(target: Any) -> Any:
        return address if isinstance(target, tuple) and target[0] == stand_in else target

    socket.getaddrinfo = resolve_here
    setattr(socket.socket, "connect", lambda own, target: connect(own, led(target)))
    setattr(socket.socket, "connect_ex", lambda own, target: connect_ex(own, led(target)))
    os.environ.update(dict.fromkeys(AUTHORITY_VARIABLES, ca_file))
    try:
        yield
    finally:
        socket.getaddrinfo = resolve
        setattr(socket.socket, "connect", connect)
        setattr(socket.socket, "connect_ex", connect_ex)
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
