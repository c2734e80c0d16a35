"""Looks a device's keys up, seals messages for it, and sends them; STENTOR_URL, STENTOR_KEY, DEVICE and CONTENT say where and what."""

import os

from stentor import Client, seal

with Client(os.environ["STENTOR_URL"], os.environ["STENTOR_KEY"]) as client:
    device = client.devices.show(os.environ["DEVICE"])
    keys = device.get("keys")
    assert keys is not None, "the device has told of none"
    for content in (os.environ["CONTENT"], b"\xff" * 3, "x" * 4079, "y" * 5_000):
        sent = client.messages.send(target={"device": device["id"]}, gateway=seal(keys, content))
        print(sent["id"])
