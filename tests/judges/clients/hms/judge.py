"""Drives Huawei's unmodified SDK for Python and pyhcm through one scenario and prints one JSON line per step."""

import importlib.util
import json
import pathlib
import sys
import types

CLIENT, SECRET, AUTHORITY = sys.argv[1], sys.argv[2], sys.argv[3]

# The package names itself `src.push_admin`, as in the folder that it was published from.
origin = importlib.util.find_spec("push_admin").origin
source = types.ModuleType("src")
source.__path__ = [str(pathlib.Path(origin).parent.parent)]
sys.modules["src"] = source

from pyhcm import HCMNotification  # noqa: E402
from src import push_admin  # noqa: E402
from src.push_admin import messaging  # noqa: E402


def report(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def attempt(step, call):
    try:
        report(step, ok=True, value=call())
    except Exception as error:  # the test decides which error is right
        report(step, ok=False, error=type(error).__name__, detail=str(error))


def shown(**config):
    notification = messaging.Notification(title="Hello", body="from the SDK")
    click = messaging.AndroidClickAction(action_type=3)
    android = messaging.AndroidConfig(
        ttl="600s", notification=messaging.AndroidNotification(click_action=click), **config)
    return {"notification": notification, "android": android}


def send(tokens, validate_only=False, **content):
    message = messaging.Message(token=tokens, **content)
    answer = messaging.send_message(message, validate_only=validate_only, verify_peer=AUTHORITY)
    try:
        listed = json.loads(answer.reason)
    except ValueError:
        listed = answer.reason
    return [answer.code, listed]


def main():
    push_admin.initialize_app(CLIENT, SECRET)
    attempt("single", lambda: send(["hms-one"], **shown()))
    attempt("data", lambda: send(["hms-data"], data="{\"k\": \"v\"}"))
    many = ["hms-%d" % number for number in range(1000)]
    attempt("many", lambda: send(many, **shown(collapse_key=7, urgency="HIGH", category="IM")))
    attempt("partial", lambda: send(["hms-two", "gone-1", "hms-three"], **shown()))
    attempt("dry run", lambda: send(["hms-dry"], validate_only=True, **shown()))
    attempt("dead", lambda: send(["gone-1", "gone-2"], **shown()))
    small = HCMNotification(CLIENT, SECRET)
    attempt("small", lambda: small.notify_single_device(token="hms-small", title="Hello", message_body="there"))
    attempt("wrong secret", HCMNotification(CLIENT, "wrong").get_access_token)


main()
