"""Client of Stentor, a self-hosted messaging server.

`Client` waits for each reply, `AsyncClient` is for asyncio. Both have one method for each operation, by noun:
``client.devices.register(...)``, ``client.messages.send(...)``.
"""

from ._client import AsyncClient, Client
from ._discovery import Found, NotFound, discover
from ._problem import ConnectionFailed, Problem, StentorError
from ._retries import Retries
from ._runtime import UNSET, Unset
from ._sealing import seal
from ._version import VERSION as __version__

__all__ = [
    "UNSET",
    "AsyncClient",
    "Client",
    "ConnectionFailed",
    "Found",
    "NotFound",
    "Problem",
    "Retries",
    "StentorError",
    "Unset",
    "__version__",
    "discover",
    "seal",
]
