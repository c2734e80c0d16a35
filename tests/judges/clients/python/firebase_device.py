"""Lets the unmodified firebase-admin send one message to a device, and prints the name that it was given."""

import sys

import firebase_admin
from firebase_admin import credentials, messaging

firebase_admin.initialize_app(credentials.Certificate(sys.argv[1]))
message = messaging.Message(
    token=sys.argv[2],
    notification=messaging.Notification(title="Hello", body="from firebase-admin"),
    data={"n": "1"},
)
print(messaging.send(message), flush=True)
