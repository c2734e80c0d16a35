"""Finding servers on the local network by DNS-SD (RFC 6763), and checking what they say of themselves."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
import threading
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Dict, List, Optional, Union

import httpx

from ._problem import StentorError

SERVICE = "_stentor._tcp.local."
"""The service's name."""
_SIGNED = "/.well-known/stentor.jws"
_DOCUMENT_MAX_BYTES = 64 * 1024
_SERVERS_MAX = 64
_HOST_NAME = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


class NotFound(StentorError):
    """No server was found, or not exactly one, or what it says of itself is not signed by the key it announces."""


@dataclass(frozen=True)
class Found:
    """A server that was found, whose document is signed by the key it announced."""

    url: str
    """Where it is."""
    fingerprint: str
    """The thumbprint of its key (RFC 7638). Who keeps it knows the server again."""
    document: Dict[str, Any]
    """What it says of itself: version, faces, addresses."""


def discover(
    timeout_seconds: float = 3.0, fingerprint: Optional[str] = None, *, ca: Optional[str] = None
) -> List[Found]:
    """Returns the servers that announce themselves (`stentor serve --announce`), each checked.

    Needs ``stentor[discover]``. It looks for `timeout_seconds`; with a fingerprint it returns as soon as that server is there,
    and no other. The signature shows that the document is of the key's holder, not who that is: keep the fingerprint.
    `ca` names a PEM file with the authorities that servers with TLS must be certified by, in place of the usual ones.
    """
    if find_spec("zeroconf") is None or find_spec("cryptography") is None:
        raise StentorError("finding servers needs more libraries: pip install 'stentor[discover]'")
    found: List[Found] = []
    for url, announced in _announced(timeout_seconds, fingerprint):
        if fingerprint not in (None, announced):
            continue
        try:
            found.append(look_at(url, announced, ca=ca))
        except (httpx.HTTPError, NotFound):
            continue
    return found


def bind(timeout_seconds: float, fingerprint: Optional[str] = None, ca: Optional[str] = None) -> Found:
    """Returns the one server that there is, or the one whose key has the fingerprint."""
    found = discover(timeout_seconds, fingerprint, ca=ca)
    if len(found) != 1:
        names = ", ".join(f"{one.url} ({one.fingerprint})" for one in found) or "none"
        raise NotFound(f"exactly one server is needed, found: {names}")
    return found[0]


def trust(ca: Optional[str]) -> Union[bool, ssl.SSLContext]:
    """Returns what httpx takes as `verify`: the authorities in a PEM file and no others, or the usual ones."""
    return True if ca is None else ssl.create_default_context(cafile=ca)


def look_at(url: str, fingerprint: Optional[str] = None, *, ca: Optional[str] = None) -> Found:
    """Reads and checks the service document of a server; `ca` is that of `discover`.

    Raises NotFound when its signature does not hold, or the key is not the one of the fingerprint.
    """
    url = url.rstrip("/")
    with httpx.Client(timeout=5.0, trust_env=False, verify=trust(ca)) as http:
        with http.stream("GET", url + _SIGNED) as response:
            response.raise_for_status()
            text = b""
            for piece in response.iter_bytes():
                text += piece
                if len(text) > _DOCUMENT_MAX_BYTES:
                    raise NotFound("the service document is too long")
    return _checked(url, text.decode("ascii", "replace").strip(), fingerprint)


def _checked(url: str, signed: str, fingerprint: Optional[str]) -> Found:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        head, payload, signature = signed.split(".")
        document = json.loads(_decoded(payload))
        kid = json.loads(_decoded(head))["kid"]
        if json.loads(_decoded(head))["alg"] != "EdDSA":
            raise NotFound("the service document is signed with another algorithm")
        x = next(key["x"] for key in document["keys"] if key["kid"] == kid)
        Ed25519PublicKey.from_public_bytes(_decoded(x)).verify(_decoded(signature), f"{head}.{payload}".encode())
    except (ValueError, KeyError, TypeError, StopIteration, InvalidSignature) as error:
        raise NotFound("the signature of the service document does not hold") from error
    if kid != _thumbprint(x) or fingerprint not in (None, kid):
        raise NotFound("the service document is signed by another key")
    return Found(url, kid, document)


def _thumbprint(x: str) -> str:
    members = f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'
    return base64.urlsafe_b64encode(hashlib.sha256(members.encode()).digest()).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _announced(timeout_seconds: float, wanted: Optional[str]) -> List["tuple[str, str]"]:
    """Lists address and fingerprint of what announces itself."""
    from zeroconf import ServiceBrowser, ServiceStateChange, Zeroconf

    names: Dict[str, None] = {}
    more = threading.Condition()

    def changed(zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        with more:
            if state_change is not ServiceStateChange.Removed and len(names) < _SERVERS_MAX:
                names[name] = None
            more.notify()

    zeroconf = Zeroconf()
    found: Dict["tuple[str, str]", None] = {}
    end = time.monotonic() + timeout_seconds
    try:
        browser = ServiceBrowser(zeroconf, SERVICE, handlers=[changed])
        while wanted is None or not any(fingerprint == wanted for _, fingerprint in found):
            left = end - time.monotonic()
            with more:
                if not names and (left <= 0 or not more.wait(left)):
                    break
                taken = list(names)
                names.clear()
            for name in taken:
                info = zeroconf.get_service_info(SERVICE, name, timeout=1000)
                found.update((one, None) for one in _places(info))
        browser.cancel()
    finally:
        zeroconf.close()
    return list(found)


def _places(info: Any) -> List["tuple[str, str]"]:
    if info is None or info.port is None:
        return []
    values = {name: value for name, value in info.properties.items() if value is not None}
    fingerprint = values.get(b"fp", b"").decode("ascii", "replace")
    scheme = "https" if values.get(b"tls") == b"1" else "http"
    hosts = [f"[{one}]" if ":" in one else one for one in info.parsed_addresses()]
    # Over TLS a server is asked by the name of its certificate, where it announces one; what is no name is not taken for one.
    name = values.get(b"host", b"").decode("ascii", "replace")
    if scheme == "https" and len(name) <= 253 and _HOST_NAME.fullmatch(name):
        hosts = [name]
    return [(f"{scheme}://{host}:{info.port}", fingerprint) for host in hosts[:1]]
