"""Registers a device and sends a message through the client that openapi-python-client has made."""

import importlib
import os
import sys

name = sys.argv[1]


def of(module):
    return importlib.import_module(f"{name}.{module}")


models = of("models")
client = of("client").AuthenticatedClient(base_url=os.environ["STENTOR_URL"], token=os.environ["STENTOR_KEY"])
device = models.DeviceRegistration(platform=models.Platform.ANDROID, token="token-of-opc", user="maria")
registered = of("api.devices.devices_register").sync(client=client, body=device)
data = models.MessageRequestData.from_dict({"from": "openapi-python-client"})
message = models.MessageRequest(target=models.TargetUser(user="maria"), data=data)
sent = of("api.messages.messages_send").sync(client=client, body=message)
print(registered.id, sent.id)
