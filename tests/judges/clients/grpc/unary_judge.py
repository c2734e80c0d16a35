"""A client made by grpcio-tools uses the gRPC face from its description alone: unary_judge.py <url> <key>"""

import grpc
from calls import DEADLINE_SECONDS, address, metadata, refused

import stentor_pb2 as pb
import stentor_pb2_grpc as stub

channel = grpc.insecure_channel(address)
devices, messages = stub.DevicesStub(channel), stub.MessagesStub(channel)
asked = {"metadata": metadata, "timeout": DEADLINE_SECONDS}

phone = pb.RegisterDeviceRequest(
    platform="android", provider="null", token="token-of-a-phone-1", topics=["news", "sport"]
)
device = devices.RegisterDevice(phone, **asked)
assert device.created and device.id.startswith("dev_"), device
assert not devices.RegisterDevice(phone, **asked).created
shown = devices.ShowDevice(pb.ShowDeviceRequest(device=device.id), **asked)
assert (shown.platform, shown.state, shown.HasField("user")) == ("android", "active", False), shown
topics = devices.ListDeviceTopics(pb.ListDeviceTopicsRequest(device=device.id), **asked)
assert list(topics.topics) == ["news", "sport"], topics


def change(**what):
    return devices.ChangeDevice(pb.ChangeDeviceRequest(device=device.id, **what), **asked)


changed = change(user="anna", locale="de-CH", tags=["vip", "beta"])
assert (changed.user, changed.locale, sorted(changed.tags)) == ("anna", "de-CH", ["beta", "vip"]), changed
changed = change(clear=["user", "tags"])
assert not changed.HasField("user") and not changed.tags and changed.locale == "de-CH", changed
code, details = refused(lambda: change(user="anna", clear=["user"]))
assert code == grpc.StatusCode.INVALID_ARGUMENT, code
assert [one.field for one in details["BadRequest"].field_violations] == ["clear[0]"], details

message = pb.SendMessageRequest(
    target=pb.Target(topic="news"), data={"k": "v & <w> größer"}, ttl_seconds=60, idempotency_key="once-grpc"
)
sent, again = messages.SendMessage(message, **asked), messages.SendMessage(message, **asked)
assert (sent.replayed, again.replayed) == (False, True), (sent, again)
assert sent.accepted.id == again.accepted.id
ledger = messages.ShowMessageLedger(pb.ShowMessageLedgerRequest(message=sent.accepted.id), **asked)
assert ledger.balanced and ledger.message == sent.accepted.id, ledger
everyone = pb.SendMessageRequest(target=pb.Target(everyone=True), data={"k": "v"})
assert messages.SendMessage(everyone, **asked).accepted.id != sent.accepted.id

wrong_key = [("authorization", "Bearer sk_none")]
code, details = refused(lambda: devices.RegisterDevice(phone, metadata=wrong_key, timeout=DEADLINE_SECONDS))
assert code == grpc.StatusCode.UNAUTHENTICATED, code
assert (details["ErrorInfo"].reason, details["ErrorInfo"].domain) == ("unauthorized", "stentor"), details
assert details["RequestInfo"].request_id, details
code, details = refused(lambda: devices.RegisterDevice(pb.RegisterDeviceRequest(platform="vms", token="t"), **asked))
assert code == grpc.StatusCode.INVALID_ARGUMENT and details["ErrorInfo"].reason == "invalid_field", details
assert [one.field for one in details["BadRequest"].field_violations] == ["platform"], details
other = pb.SendMessageRequest()
other.CopyFrom(message)
other.ttl_seconds = 61
code, details = refused(lambda: messages.SendMessage(other, **asked))
assert code == grpc.StatusCode.FAILED_PRECONDITION, code
assert details["ErrorInfo"].reason == "idempotency_key_reused", details
nothing = pb.ShowDeviceRequest(device="dev_0000000000009")
code, details = refused(lambda: devices.ShowDevice(nothing, **asked))
assert (code, details["ErrorInfo"].reason) == (grpc.StatusCode.NOT_FOUND, "not_found"), details
unknown = channel.unary_unary("/stentor.v1.Devices/Vanish")
code, _ = refused(lambda: unknown(b"", **asked))
assert code == grpc.StatusCode.UNIMPLEMENTED, code

devices.RemoveDevice(pb.RemoveDeviceRequest(device=device.id), **asked)
print("a client of", grpc.__name__, grpc.__version__, "is content")
