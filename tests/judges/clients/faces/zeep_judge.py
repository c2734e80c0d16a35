"""zeep, unmodified, uses the SOAP face from its description alone: zeep_judge.py <url> <key>"""

import sys

import requests
import zeep
from zeep.plugins import HistoryPlugin
from zeep.transports import Transport

url, key = sys.argv[1:]
session = requests.Session()
session.trust_env = False
session.headers["Authorization"] = f"Bearer {key}"


def stories(port, number):
    history = HistoryPlugin()
    transport = Transport(session=session)
    client = zeep.Client(f"{url}/soap?wsdl", port_name=port, transport=transport, plugins=[history])
    call = client.service

    token = f"token-of-a-phone-{number}"
    device = call.RegisterDevice(platform="android", provider="null", token=token, topics=["news", "sport"])
    assert device["created"] is True, device
    shown = call.ShowDevice(device=device["id"])
    assert shown["platform"] == "android" and shown["state"] == "active", shown
    assert call.ListDeviceTopics(device=device["id"]) == ["news", "sport"]
    changed = call.ChangeDevice(device=device["id"], user="anna")
    assert changed["user"] == "anna", changed
    changed = call.ChangeDevice(device=device["id"], user=zeep.xsd.Nil)
    assert changed["user"] is None, changed

    message = {
        "target": {"topic": "news"},
        "data": {"entry": [{"key": "k", "value": "v & <w>"}]},
        "ttl_seconds": 60,
        "idempotency_key": f"once-{number}",
    }
    sent = call.SendMessage(**message)
    again = call.SendMessage(**message)
    assert sent["replayed"] is False and again["replayed"] is True, (sent, again)
    assert sent["accepted"]["id"] == again["accepted"]["id"]
    ledger = call.ShowMessageLedger(message=sent["accepted"]["id"])
    assert ledger["balanced"] is True, ledger
    everyone = call.SendMessage(target={"everyone": True}, data={"entry": [{"key": "k", "value": "v"}]})
    assert everyone["accepted"]["id"] != sent["accepted"]["id"]

    def refused(name, **asked):
        try:
            call[name](**asked)
        except zeep.exceptions.Fault as fault:
            refusal = client.get_element("{urn:stentor:v1}Refusal")
            return refusal.parse(fault.detail.find("{urn:stentor:v1}Refusal"), client.wsdl.types)
        raise AssertionError(f"{name} is not refused")

    wrong = refused("RegisterDevice", platform="vms", token="t")
    assert (wrong["code"], wrong["field"]) == ("invalid_field", "platform"), wrong
    reused = refused("SendMessage", **{**message, "ttl_seconds": 61})
    assert reused["code"] == "idempotency_key_reused", reused
    nothing = refused("ShowDevice", device="dev_0000000000009")
    assert nothing["code"] == "not_found", nothing
    assert call.RemoveDevice(device=device["id"]) is None
    expected = "http://www.w3.org/2003/05/soap-envelope" if port == "Soap12" else "http://schemas.xmlsoap.org/soap/envelope/"
    assert history.last_received["envelope"].tag == f"{{{expected}}}Envelope"


for number, port in enumerate(["Soap11", "Soap12"]):
    stories(port, number)
print("zeep", zeep.__version__, "is content")
