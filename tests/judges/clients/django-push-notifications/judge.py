"""Sends to WNS by the unmodified django-push-notifications and prints one JSON line for each step."""

import json
import sys

import django
from django.conf import settings

access_url, secret, channels = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
settings.configure(
    INSTALLED_APPS=["push_notifications"],
    DATABASES={},
    PUSH_NOTIFICATIONS_SETTINGS={
        "WNS_PACKAGE_SECURITY_ID": "ms-app://s-1-15-2-judge",
        "WNS_SECRET_KEY": secret,
        "WNS_ACCESS_URL": access_url,
    },
)
django.setup()

from push_notifications.wns import WNSError, wns_send_message  # noqa: E402  it reads the settings when it is imported

TILE = {"tile": {"children": {"visual": {"children": {"binding": {"children": {"text": {"children": "a tile"}}}}}}}}
STEPS = {
    "toast": {"message": "hello, wörld"},
    "tile": {"xml_data": TILE},
    "raw": {"raw_data": '{"any": "text"}'},
    "large": {"raw_data": "x" * 5001},
}


def send(step, uri, **content):
    try:
        report = {"ok": True, "value": wns_send_message(uri, **content)}
    except WNSError as refused:
        report = {"ok": False, "error": f"{type(refused).__name__}: {refused}"}
    print(json.dumps({"step": step, **report}))


for step, content in STEPS.items():
    send(step, channels["device"], **content)
for step in ["gone", "unknown", "foreign", "throttled", "unavailable"]:
    send(step, channels[step], message=step)
