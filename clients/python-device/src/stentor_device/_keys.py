"""Opening what was sealed for this device (RFC 8291). The library cryptography does the arithmetic; nothing else here needs one."""

from __future__ import annotations

import base64
import hmac
import json
import os
from importlib.util import find_spec
from typing import Any, Dict, Mapping, Tuple

from ._errors import MissingLibrary

_SALT_BYTES = 16
_KEY_PLACE = 21
"""Behind salt, record size and the length of the key (RFC 8188, 2.1)."""
_HEADER_BYTES = _KEY_PLACE + 65
_LAST_RECORD = b"\x02"


class Keys:
    """The keys of a device, as `stentor device run --encrypt` keeps them."""

    def __init__(self, private: str, auth: str) -> None:
        """Raises MissingLibrary where cryptography is not installed, and ValueError for what are no keys."""
        if find_spec("cryptography") is None:
            raise MissingLibrary("this device gets sealed messages, which needs a library: pip install 'stentor-device[seal]'")
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._private = ec.derive_private_key(int.from_bytes(_bytes_of(private), "big"), ec.SECP256R1())
        self._public = self._private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self._auth = _bytes_of(auth)

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Keys:
        """Reads what a folder remembers."""
        private, auth = kept.get("private"), kept.get("auth")
        if not isinstance(private, str) or not isinstance(auth, str):
            raise ValueError("keys that cannot be read")
        return cls(private, auth)

    def public(self) -> Dict[str, str]:
        """Returns what others seal with."""
        return {"p256dh": _text_of(self._public), "auth": _text_of(self._auth)}

    def open(self, body: bytes) -> bytes:
        """Opens a body of the encoding `aes128gcm`, of one record; raises ValueError for what was not sealed for this device."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        salt, theirs = body[:_SALT_BYTES], body[_KEY_PLACE:_HEADER_BYTES]
        peer = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
        shared = self._private.exchange(ec.ECDH(), peer)
        info = b"WebPush: info\0" + self._public + theirs
        secret = _expanded(_mac(self._auth, shared), info)
        root = _mac(salt, secret)
        key, nonce = (_expanded(root, b"Content-Encoding: " + name + b"\0") for name in (b"aes128gcm", b"nonce"))
        try:
            text = AESGCM(key[:16]).decrypt(nonce[:12], body[_HEADER_BYTES:], None)
        except InvalidTag as error:
            raise ValueError("this was not sealed for this device, or was changed on its way") from error
        # What is behind the mark is padding.
        text = text.rstrip(b"\0")
        if not text.endswith(_LAST_RECORD):
            raise ValueError("a record that has no end")
        return text[:-1]


def generated() -> Dict[str, Any]:
    """Makes new keys, of which the server has not been told, as a folder remembers them."""
    if find_spec("cryptography") is None:
        raise MissingLibrary("sealed messages need a library: pip install 'stentor-device[seal]'")
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value.to_bytes(32, "big")
    return {"private": _text_of(private), "auth": _text_of(os.urandom(16)), "is_told": False}


def opened(whole: Mapping[str, Any], keys: Keys) -> Dict[str, Any]:
    """Returns a message as it was before it was sealed; raises ValueError where it cannot be opened."""
    sealed = whole["sealed"]
    text = keys.open(base64.b64decode(sealed["body"]))
    if sealed.get("by") == "server":
        inside = json.loads(text)
        if not isinstance(inside, dict):
            raise ValueError("a sealed message is no object")
        return {**inside, "id": whole["id"]}
    # What a sender has sealed is its own: a text in most cases.
    name, value = _own_data(text)
    return {**{key: value for key, value in whole.items() if key != "sealed"}, "data": {name: value}}


def _own_data(text: bytes) -> Tuple[str, str]:
    try:
        return "body", text.decode()
    except UnicodeDecodeError:
        return "body_base64", base64.b64encode(text).decode()


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _expanded(root: bytes, info: bytes) -> bytes:
    """Returns the first 32 bytes of HKDF's second step (RFC 5869, 2.3)."""
    return _mac(root, info + b"\x01")


def _bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _text_of(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
