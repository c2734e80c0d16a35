"""The clients that programs make."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Optional, Type

import httpx

from ._discovery import bind, trust
from ._operations import AsyncOperations, Operations
from ._retries import Retries
from ._runtime import AsyncTransport, Transport

_TIMEOUT_SECONDS = 30.0


class Client(Operations):
    """Calls a server and waits for each reply."""

    def __init__(
        self,
        url: str,
        key: Optional[str] = None,
        *,
        app: Optional[str] = None,
        retries: Retries = Retries(),
        timeout_seconds: float = _TIMEOUT_SECONDS,
        http: Optional[httpx.Client] = None,
    ) -> None:
        """Makes a client.

        url: Where the server is, such as ``http://127.0.0.1:8686``.
        key: A key of an app, or the operator's.
        app: Which app the operator's key speaks for.
        retries: How often and how soon calls are tried again.
        timeout_seconds: How long each step of an attempt may take.
        http: A client of httpx with other settings (certificates, proxies); `timeout_seconds` is not used then.
        """
        self._transport = Transport(url, key, app, retries, http or httpx.Client(timeout=timeout_seconds))
        super().__init__(self._transport)

    @classmethod
    def discover(
        cls,
        key: Optional[str] = None,
        *,
        app: Optional[str] = None,
        fingerprint: Optional[str] = None,
        timeout_seconds: float = 3.0,
        ca: Optional[str] = None,
    ) -> "Client":
        """Finds a server on the local network and makes a client of it; see `stentor.discover`.

        With a fingerprint it is that server or none: without one, whoever announces a server of his own gets the key.
        `ca` names a PEM file with the authorities that a server with TLS must be certified by, in place of the usual ones.
        Raises NotFound when there is none, or more than one.
        """
        found = bind(timeout_seconds, fingerprint, ca)
        return cls(found.url, key, app=app, http=httpx.Client(timeout=_TIMEOUT_SECONDS, verify=trust(ca)))

    def close(self) -> None:
        """Closes all connections."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


class AsyncClient(AsyncOperations):
    """Calls a server from asyncio."""

    def __init__(
        self,
        url: str,
        key: Optional[str] = None,
        *,
        app: Optional[str] = None,
        retries: Retries = Retries(),
        timeout_seconds: float = _TIMEOUT_SECONDS,
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        """Makes a client; the arguments are those of `Client`."""
        http = http or httpx.AsyncClient(timeout=timeout_seconds)
        self._transport = AsyncTransport(url, key, app, retries, http)
        super().__init__(self._transport)

    @classmethod
    async def discover(
        cls,
        key: Optional[str] = None,
        *,
        app: Optional[str] = None,
        fingerprint: Optional[str] = None,
        timeout_seconds: float = 3.0,
        ca: Optional[str] = None,
    ) -> "AsyncClient":
        """Finds a server on the local network and makes a client of it, as `Client.discover` does."""
        found = await asyncio.to_thread(bind, timeout_seconds, fingerprint, ca)
        return cls(found.url, key, app=app, http=httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, verify=trust(ca)))

    async def close(self) -> None:
        """Closes all connections."""
        await self._transport.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()
