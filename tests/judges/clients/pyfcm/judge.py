"""Drives the unmodified pyfcm 1.5.4 through one scenario and prints one JSON line per step."""

import json
import sys

from pyfcm import FCMNotification

SERVER, KEY = sys.argv[1], sys.argv[2]


class Sender(FCMNotification):
    FCM_END_POINT = SERVER + "/fcm/send"


def report(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def attempt(step, call):
    try:
        report(step, ok=True, value=call())
    except Exception as error:  # the test decides which error is right
        report(step, ok=False, error=type(error).__name__, detail=str(error))


def counted(reply):
    errors = [result.get("error") for result in reply["results"]]
    return {"success": reply["success"], "failure": reply["failure"], "errors": errors}


def main():
    sender = Sender(api_key=KEY)
    attempt("single", lambda: counted(sender.notify_single_device(
        registration_id="py-one", message_title="Hello", message_body="from pyfcm", data_message={"k": "v"})))
    many = ["py-%d" % number for number in range(30)] + ["bad\ntoken"]
    attempt("many", lambda: counted(sender.notify_multiple_devices(registration_ids=many, message_body="Hello")))
    attempt("data only", lambda: counted(sender.single_device_data_message(
        registration_id="py-data", data_message={"k": "v"})))
    attempt("topic", lambda: sender.notify_topic_subscribers(
        topic_name="news", message_body="Hello")["topic_message_id"] is not None)
    attempt("dead", lambda: counted(sender.notify_single_device(registration_id="gone", message_body="Hello")))
    attempt("wrong key", lambda: counted(Sender(api_key="sk_wrong").notify_single_device(
        registration_id="py-one", message_body="Hello")))
    broken = Sender(api_key=KEY)
    broken.send_request([b"{"])
    attempt("broken", broken.parse_responses)


main()
