"""Drives the unmodified aioapns through one scenario and prints one JSON line per step."""

import asyncio
import json
import sys

from aioapns import APNs, NotificationRequest, PushType


def request(token, **extras):
    alert = {"title": "Hello", "body": "from a judge"}
    return NotificationRequest(device_token=token, message={"aps": {"alert": alert}}, **extras)


async def main():
    tokens = json.loads(sys.argv[2])
    with open(sys.argv[1], encoding="ascii") as file:
        key = file.read()
    client = APNs(key=key, key_id="KEYID12345", team_id="TEAMID1234", topic="org.example.app")
    for step, token in tokens.items():
        extras = {"time_to_live": 60, "priority": 10, "collapse_key": "news", "push_type": PushType.ALERT}
        answer = await client.send_notification(request(token, **extras))
        facts = {"status": answer.status, "reason": answer.description, "timestamp": answer.timestamp}
        print(json.dumps({"step": step, "ok": answer.is_successful, **facts}), flush=True)
    first = tokens["accepted"][:-4]
    batch = [client.send_notification(request(f"{first}{number:04x}")) for number in range(200)]
    accepted = [answer.is_successful for answer in await asyncio.gather(*batch)]
    print(json.dumps({"step": "batch", "ok": all(accepted), "value": sum(accepted)}), flush=True)


asyncio.run(main())
