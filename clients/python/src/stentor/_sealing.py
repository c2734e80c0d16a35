"""Sealing messages for one device (RFC 8291), so that the server holds what it cannot read."""

from __future__ import annotations

import base64
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Dict, Union

from ._problem import StentorError
from ._types import DeviceKeys

_RECORD_MIN_BYTES = 4096
_RECORD_OVERHEAD_BYTES = 17
"""The mark at the end of a record, and its tag."""


def seal(keys: DeviceKeys, content: Union[bytes, str]) -> Dict[str, Any]:
    """Seals content for a device; returns what a message to it has as `gateway`.

    Needs ``stentor[seal]``: the library http_ece does it. `keys` is what ``client.devices.show(...)`` has as `keys`. The message must
    have neither notification nor data, which would be readable.
    """
    if find_spec("http_ece") is None or find_spec("cryptography") is None:
        raise StentorError("sealing needs more libraries: pip install 'stentor[seal]'")
    from cryptography.hazmat.primitives.asymmetric import ec

    text = content.encode() if isinstance(content, str) else content
    # One record, whatever its length: RFC 8291 allows no more.
    record = max(_RECORD_MIN_BYTES, len(text) + _RECORD_OVERHEAD_BYTES + 1)
    body: bytes = import_module("http_ece").encrypt(
        text,
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=_bytes_of(keys["p256dh"]),
        auth_secret=_bytes_of(keys["auth"]),
        rs=record,
        version="aes128gcm",
    )
    return {"raw": base64.b64encode(body).decode(), "encoding": "aes128gcm"}


def _bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
