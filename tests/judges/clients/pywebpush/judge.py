"""Sends by the unmodified pywebpush what each line of standard input asks for, and prints one JSON line about each."""

import base64
import json
import sys

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid01, Vapid02
from pywebpush import WebPushException, webpush


def pair(of):
    vapid = of()
    vapid.generate_keys()
    return vapid


# The first form of the token is that of the draft, which its senders use with the draft's encryption.
KEYS = {"own": pair(Vapid02), "other": pair(Vapid02)}
DRAFTS = {name: Vapid01(vapid.private_key) for name, vapid in KEYS.items()}


def public(vapid):
    point = vapid.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.urlsafe_b64encode(point).decode().rstrip("=")


def send(asked):
    names = {"topic": "Topic", "urgency": "Urgency"}
    keys = DRAFTS if asked["encoding"] == "aesgcm" else KEYS
    try:
        response = webpush(
            asked["subscription"],
            base64.b64decode(asked["body"]),
            vapid_private_key=keys[asked["key"]],
            vapid_claims={"sub": "mailto:judge@example.com"},
            content_encoding=asked["encoding"],
            ttl=asked["ttl"],
            headers={header: asked[name] for name, header in names.items() if asked[name]},
        )
    except WebPushException as refused:
        response = refused.response
    headers = response.headers
    return {
        "status": response.status_code,
        "ttl": headers.get("TTL"),
        "location": headers.get("Location"),
        "body": response.text,
    }


print(json.dumps({name: public(vapid) for name, vapid in KEYS.items()}), flush=True)
for line in sys.stdin:
    print(json.dumps(send(json.loads(line))), flush=True)
