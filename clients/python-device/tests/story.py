"""A device for the story: story.py FOLDER; STENTOR_URL and STENTOR_KEY say where and how.

It writes each message into FOLDER/got.ndjson, holds it while FOLDER/hold is there, and tells the app what it heard and what its
token is.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path

from stentor_device import Backoff, Device, Message

FOLDER = Path(sys.argv[1])
logging.basicConfig(level=logging.INFO)
device = Device(
    FOLDER,
    os.environ["STENTOR_URL"],
    os.environ["STENTOR_KEY"],
    topics=["news"],
    backoff=Backoff(first_seconds=0.1, last_seconds=1.0),
)


@device.on_token
def tell(token: str) -> None:
    """Tells the app where it can send to."""
    device.send({"token": token})


@device.on_notification
def show(message: Message) -> None:
    """Notes a message for people."""
    note("notification", message)


@device.on_data
def work(message: Message) -> None:
    """Notes a message for the program, holds it, and answers."""
    note("data", message)
    while (FOLDER / "hold").exists():
        time.sleep(0.01)
    device.send({"heard": message.id}, message_id=f"re-{message.id}")


def note(kind: str, message: Message) -> None:
    """Writes down what came."""
    with open(FOLDER / "got.ndjson", "a") as file:
        print(json.dumps({"kind": kind, **message.whole}), file=file)


device.run()
