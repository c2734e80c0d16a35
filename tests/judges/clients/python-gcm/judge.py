"""Drives the unmodified python-gcm 0.4 through one scenario and prints one JSON line per step: judge.py KEY REPLACED_TOKEN"""

import json
import sys

from gcm import GCM

KEY, OLD = sys.argv[1:]


def report(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def attempt(step, call):
    try:
        report(step, ok=True, value=call())
    except Exception as error:  # the test decides which error is right
        report(step, ok=False, error=type(error).__name__, detail=str(error))


def main():
    sender = GCM(KEY)
    data = {"k": "v & w", "ü": "ß"}
    many = ["pg-%d" % number for number in range(20)] + ["gone", OLD]

    def sorted_out():
        reply = sender.json_request(registration_ids=many, data=data, collapse_key="c", time_to_live=60)
        return {
            "success": len(reply["success"]),
            "errors": reply.get("errors"),
            "canonical": reply.get("canonical"),
        }

    attempt("many", sorted_out)
    attempt("plain", lambda: sender.plaintext_request(registration_id="pg-plain", data=data, collapse_key="c", time_to_live=60))
    attempt("plain replaced", lambda: sender.plaintext_request(registration_id=OLD, data={"k": "v"}))
    attempt("plain gone", lambda: sender.plaintext_request(registration_id="gone", data={"k": "v"}))
    attempt("plain too big", lambda: sender.plaintext_request(registration_id="pg-big", data={"k": "v" * 5000}))
    attempt("topic", lambda: isinstance(sender.send_topic_message(topic="news", data=data), int))
    attempt("retried", lambda: len(sender.json_request(registration_ids=["busy"], data=data, retries=3)["success"]))
    attempt("wrong key", lambda: GCM("sk_wrong").json_request(registration_ids=["pg-0"], data=data))


main()
