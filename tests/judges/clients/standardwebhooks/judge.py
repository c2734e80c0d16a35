"""Receives two requests, verifies each with the unmodified standardwebhooks, and prints one JSON line per step."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

PORT, SECRET = int(sys.argv[1]), sys.argv[2]
OTHER_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
# The first request is refused, so that the message comes again.
ANSWERS = {"first": 500, "again": 204}


def report(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def verified(secret, body, headers):
    try:
        return {"ok": True, "value": Webhook(secret).verify(body, headers)}
    except WebhookVerificationError as error:
        return {"ok": False, "error": type(error).__name__, "detail": str(error)}


class Receiver(BaseHTTPRequestHandler):
    step = ""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        report(self.step, id=headers["webhook-id"], **verified(SECRET, body, headers))
        if self.step == "first":
            report("other secret", **verified(OTHER_SECRET, body, headers))
            report("changed body", **verified(SECRET, body + b" ", headers))
        self.send_response(ANSWERS[self.step])
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


with HTTPServer(("127.0.0.1", PORT), Receiver) as server:
    for step in ANSWERS:
        Receiver.step = step
        server.handle_request()
