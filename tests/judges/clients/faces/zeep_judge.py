"""zeep, unmodified, uses the SOAP face from its description alone: zeep_judge.py <url> <key>"""

import copy
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
    together(client, transport, port, f"{token}-together")
    assert call.RemoveDevice(device=device["id"]) is None
    expected = "http://www.w3.org/2003/05/soap-envelope" if port == "Soap12" else "http://schemas.xmlsoap.org/soap/envelope/"
    assert history.last_received["envelope"].tag == f"{{{expected}}}Envelope"


def together(client, transport, port, token):
    """Three operations in one body, of which the second is refused: each has its reply, in order."""
    asked = [
        ("RegisterDevice", {"platform": "android", "provider": "null", "token": token}),
        ("RegisterDevice", {"platform": "vms", "token": token}),
        ("ListTopics", {"limit": 1}),
    ]
    envelopes = [client.create_message(client.service, name, **record) for name, record in asked]
    namespace = envelopes[0].nsmap[envelopes[0].prefix]
    body = envelopes[0].find(f"{{{namespace}}}Body")
    for other in envelopes[1:]:
        body.extend(copy.deepcopy(element) for element in other.find(f"{{{namespace}}}Body"))
    assert len(body) == 3, len(body)
    kind = "text/xml" if port == "Soap11" else "application/soap+xml"
    reply = transport.post_xml(f"{url}/soap", envelopes[0], {"Content-Type": f"{kind}; charset=utf-8"})
    assert reply.status_code == 200, (reply.status_code, reply.content)
    replies = list(zeep.loader.parse_xml(reply.content, transport).find(f"{{{namespace}}}Body"))
    assert [one.tag for one in replies] == [f"{{urn:stentor:v1}}{name}Response" for name, _ in asked], reply.content
    read = lambda name, node: client.get_element(f"{{urn:stentor:v1}}{name}").parse(node, client.wsdl.types)
    device = read("RegisterDeviceResponse", replies[0])
    refusal = read("Refusal", replies[1].find("{urn:stentor:v1}Refusal"))
    topics = read("ListTopicsResponse", replies[2])
    assert device["return"]["created"] is True, device
    assert (refusal["code"], refusal["field"]) == ("invalid_field", "platform"), refusal
    assert [topic["name"] for topic in topics["return"]["topics"]] == ["news"], topics


for number, port in enumerate(["Soap11", "Soap12"]):
    stories(port, number)
print("zeep", zeep.__version__, "is content")
