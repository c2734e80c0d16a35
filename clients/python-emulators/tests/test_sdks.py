"""Unmodified libraries for senders, pointed at the emulators by the lines of docs/test-kits.md."""

import asyncio
from pathlib import Path

import aioapns.common
import firebase_admin
import pytest
from firebase_admin import credentials, messaging

from pytest_stentor import ApnsEmulator, FcmEmulator

TOKEN = "ab" * 32


def test_firebase_admin_sends_and_gets_the_answer_that_was_chosen(fcm_emulator: FcmEmulator) -> None:
    fcm_emulator.answer("gone", "UNREGISTERED")
    with fcm_emulator.redirect():
        credential = credentials.Certificate(fcm_emulator.credential_file)
        app = firebase_admin.initialize_app(credential)
        messaging.send(messaging.Message(token="phone", data={"order": "7"}), app=app)
        with pytest.raises(messaging.UnregisteredError):
            messaging.send(messaging.Message(token="gone"), app=app)
    assert [message.token for message in fcm_emulator.messages()] == ["phone"]


def test_firebase_admin_subscribes_to_topics_and_sends_with_asyncio(fcm_emulator: FcmEmulator) -> None:
    with fcm_emulator.redirect():
        app = firebase_admin.initialize_app(credentials.Certificate(fcm_emulator.credential_file), name="async")
        assert messaging.subscribe_to_topic(["phone"], "news", app=app).success_count == 1
        messages = [messaging.Message(topic="news"), messaging.Message(token="phone")]
        sent = asyncio.run(messaging.send_each_async(messages, app=app))
    assert sent.success_count == 2
    assert {message.token for message in fcm_emulator.messages()} == {"/topics/news", "phone"}


def test_aioapns_sends_and_gets_the_answer_that_was_chosen(apns_emulator: ApnsEmulator) -> None:
    apns_emulator.answer("ef" * 32, "BadDeviceToken")

    async def send(token: str) -> aioapns.common.NotificationResult:
        client = aioapns.APNs(
            key=Path(apns_emulator.credential_file).read_text(),
            key_id=apns_emulator.key_id,
            team_id=apns_emulator.team_id,
            topic="org.example.app",
        )
        notification = aioapns.NotificationRequest(device_token=token, message={"aps": {"alert": "Hello"}})
        return await client.send_notification(notification)

    with apns_emulator.redirect():
        assert asyncio.run(send(TOKEN)).is_successful
        assert asyncio.run(send("ef" * 32)).description == "BadDeviceToken"
    [sent] = apns_emulator.messages()
    assert (sent.token, sent.topic, sent.payload) == (TOKEN, "org.example.app", {"aps": {"alert": "Hello"}})
