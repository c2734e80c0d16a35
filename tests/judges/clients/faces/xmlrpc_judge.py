"""Python's xmlrpc.client, unmodified, uses the XML-RPC face: xmlrpc_judge.py <url> <key>"""

import sys
import xmlrpc.client

url, key = sys.argv[1:]
scheme, host = url.split("://")
server = xmlrpc.client.ServerProxy(f"{scheme}://stentor:{key}@{host}/rpc")

methods = server.system.listMethods()
assert "messages.send" in methods and "system.multicall" in methods, methods
assert server.system.methodSignature("messages.send") == [["struct", "struct"]]
assert "idempotency_key" in server.system.methodHelp("messages.send")

device = server.devices.register(
    {"platform": "android", "provider": "null", "token": "token-of-a-phone-1", "topics": ["news"]}
)
assert device["created"] is True, device
message = {"target": {"topic": "news"}, "data": {"k": "v & <w>"}, "ttl_seconds": 60, "idempotency_key": "once-rpc"}
sent, again = server.messages.send(message), server.messages.send(message)
assert (sent["replayed"], again["replayed"]) == (False, True), (sent, again)
assert sent["accepted"]["id"] == again["accepted"]["id"]
assert server.messages.ledger({"message": sent["accepted"]["id"]})["balanced"] is True


def refused(call, asked):
    try:
        call(asked)
    except xmlrpc.client.Fault as fault:
        return fault.faultCode, fault.faultString
    raise AssertionError("it is not refused")


code, text = refused(server.devices.register, {"platform": "vms", "token": "t"})
assert code == 2 and text.startswith("invalid_field at platform: "), text
code, text = refused(server.messages.send, {**message, "ttl_seconds": 61})
assert code == 12 and text.startswith("idempotency_key_reused"), text

several = xmlrpc.client.MultiCall(server)
several.users.put({"external_id": "anna"})
several.users.show({"external_id": "nobody"})
several.users.show({"external_id": "anna"})
results = several()
assert results[0]["external_id"] == results[2]["external_id"] == "anna"
try:
    results[1]
except xmlrpc.client.Fault as fault:
    assert fault.faultCode == 8, fault
else:
    raise AssertionError("a person who is not known is shown")
print("xmlrpc.client is content")
