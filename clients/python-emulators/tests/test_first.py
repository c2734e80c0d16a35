import firebase_admin
from firebase_admin import credentials, messaging
from pytest_stentor import FcmEmulator


def test_a_buyer_is_told_that_the_order_is_ready(fcm_emulator: FcmEmulator) -> None:
    with fcm_emulator.redirect():
        app = firebase_admin.initialize_app(credentials.Certificate(fcm_emulator.credential_file), name="first")
        messaging.send(messaging.Message(token="phone", data={"order": "7"}), app=app)
    [sent] = fcm_emulator.messages("phone")
    assert sent.payload["data"] == {"order": "7"}
