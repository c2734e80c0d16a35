"""Drives the unmodified firebase-admin through one scenario and prints one JSON line per step."""

import asyncio
import json
import sys

import firebase_admin
from firebase_admin import credentials, messaging


# Installation ids, in the form that Firebase's SDKs give them; FCM does not know the last one.
FID = "cJ4vGd1wRk2aB-3_xYz09Q"
FIDS = ["dQ90zYx_3-Ba2kRw1dGv4J", "eAbCdEfGhIjKlMnOpQrStU"]
GONE_FID = "fGone0123456789abcdefg"


def report(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def attempt(step, call):
    try:
        report(step, ok=True, value=call())
    except Exception as error:  # the test decides which error is right
        report(step, ok=False, error=type(error).__name__, detail=str(error))


def message(token, **extras):
    return messaging.Message(
        token=token,
        notification=messaging.Notification(title="Hello", body="from a judge"),
        data={"key": "value"},
        **extras,
    )


def counted(batch):
    errors = [type(response.exception).__name__ for response in batch.responses if response.exception]
    return {"success": batch.success_count, "failure": batch.failure_count, "errors": errors}


def rich(token):
    return message(
        token,
        android=messaging.AndroidConfig(
            collapse_key="news",
            priority="high",
            ttl=3600,
            notification=messaging.AndroidNotification(channel_id="main", color="#ff0000"),
        ),
        apns=messaging.APNSConfig(
            headers={"apns-priority": "10"},
            payload=messaging.APNSPayload(aps=messaging.Aps(badge=3, sound="default")),
        ),
        webpush=messaging.WebpushConfig(headers={"Urgency": "high"}),
        fcm_options=messaging.FCMOptions(analytics_label="judges"),
    )


def many(prefix):
    return [message(f"{prefix}-{number}") for number in range(19)] + [message("gone-many")]


def topic(change, tokens):
    response = change(tokens, "news")
    return {"success": response.success_count, "failure": response.failure_count}


def main():
    firebase_admin.initialize_app(credentials.Certificate(sys.argv[1]))
    attempt("send", lambda: messaging.send(message("good")))
    if "once" not in sys.argv:
        the_rest()


def the_rest():
    attempt("rich", lambda: messaging.send(rich("rich")))
    attempt("dry run", lambda: messaging.send(message("dry"), dry_run=True))
    attempt("send each", lambda: counted(messaging.send_each(many("each"))))
    attempt("send each async", lambda: counted(asyncio.run(messaging.send_each_async(many("async")))))
    multicast = messaging.MulticastMessage(tokens=["multi-1", "multi-2"], data={"a": "b"})
    attempt("multicast", lambda: counted(messaging.send_each_for_multicast(multicast)))
    attempt("fid", lambda: messaging.send(messaging.Message(fid=FID, data={"a": "b"})))
    installations = messaging.MulticastMessage(fids=FIDS, data={"a": "b"})
    attempt("fids", lambda: counted(messaging.send_each_for_multicast(installations)))
    attempt("gone fid", lambda: messaging.send(messaging.Message(fid=GONE_FID, data={"a": "b"})))
    attempt("subscribe", lambda: topic(messaging.subscribe_to_topic, ["good", "rich"]))
    attempt("topic", lambda: messaging.send(messaging.Message(topic="news", data={"a": "b"})))
    condition = "'news' in topics && !('sport' in topics)"
    attempt("condition", lambda: messaging.send(messaging.Message(condition=condition, data={"a": "b"})))
    attempt("unsubscribe", lambda: topic(messaging.unsubscribe_from_topic, ["good", "rich"]))
    for token in ["gone", "invalid", "foreign", "quota", "third-party"]:
        attempt(token, lambda token=token: messaging.send(message(token)))
    for token in ["busy", "quota-wait"]:
        attempt(token, lambda token=token: messaging.send(message(token)))
    attempt("too big", lambda: messaging.send(messaging.Message(token="big", data={"a": "b" * 5000})))


main()
