"""Drives the unmodified firebase-messaging: registers, listens, and prints a JSON line for its token and each message."""

import asyncio
import json
import sys

from firebase_messaging import FcmPushClient, FcmRegisterConfig

PROJECT, KEY = sys.argv[1], sys.argv[2]


def report(step, value):
    print(json.dumps({"step": step, "value": value}), flush=True)


async def main():
    config = FcmRegisterConfig(project_id=PROJECT, app_id="1:1:web:1", api_key=KEY, messaging_sender_id=PROJECT)
    client = FcmPushClient(lambda message, persistent_id, _: report("message", [message, persistent_id]), config)
    report("token", await client.checkin_or_register())
    await client.start()
    await asyncio.sleep(100)


asyncio.run(main())
