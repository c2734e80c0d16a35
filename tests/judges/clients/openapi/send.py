"""Registers a device and sends a message through the client that openapi-generator has made."""

import os

import openapi_client as made

configuration = made.Configuration(host=os.environ["STENTOR_URL"], access_token=os.environ["STENTOR_KEY"])
with made.ApiClient(configuration) as client:
    device = made.DeviceRegistration(
        platform=made.Platform.ANDROID, token="token-of-python", user="maria", time_zone="Europe/Rome"
    )
    registered = made.DevicesApi(client).devices_register(device)
    target = made.Target(made.TargetUser(user="maria"))
    message = made.MessageRequest(target=target, data={"from": "python"}, collapse_key="from-python")
    sent = made.MessagesApi(client).messages_send(message)
    print(registered.id, sent.id)
