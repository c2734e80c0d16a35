"""A client made by grpcio-tools imports devices as a stream and watches a ledger: stream_judge.py <url> <key>"""

from datetime import datetime, timedelta, timezone

import grpc
from calls import DEADLINE_SECONDS, address, metadata, refused

import stentor_pb2 as pb
import stentor_pb2_grpc as stub

# Through gzip, so that streams are compressed as well.
channel = grpc.insecure_channel(address, compression=grpc.Compression.Gzip)
devices, messages = stub.DevicesStub(channel), stub.MessagesStub(channel)
campaigns = stub.CampaignsStub(channel)
asked = {"metadata": metadata, "timeout": DEADLINE_SECONDS}
Piece = pb.ImportDeviceStreamRequest
COUNT = 5_000
WRONG = 1_234


def phone(number, **more):
    return pb.DeviceRegistration(
        platform="android", provider="null", token=f"token-of-a-phone-{number}", topics=["news"], **more
    )


def phones():
    for number in range(COUNT):
        yield Piece(device=phone(number, locale="no language") if number == WRONG else phone(number))


result = devices.ImportDeviceStream(phones(), **asked)
assert (result.lines, result.created, result.failed) == (COUNT, COUNT - 1, 1), result
assert [(one.line, one.field) for one in result.errors] == [(WRONG + 1, "locale")], result

dry = pb.ImportOptions(dry_run=True)
result = devices.ImportDeviceStream(iter([Piece(options=dry), Piece(device=phone("x"))]), **asked)
assert (result.valid, result.created, result.dry_run) == (1, 0, True), result

header, rest = "platform,provider,token\nandr", "oid,null,token-in-a-table-1\nandroid,null,token-in-a-table-2"
table = [Piece(options=pb.ImportOptions(format="csv")), Piece(lines=header), Piece(lines=rest)]
result = devices.ImportDeviceStream(iter(table), **asked)
assert (result.lines, result.created, list(result.errors)) == (2, 2, []), result

cut = '{"platform": "android", "provider": "null", "token": "token-in-a-line-1"}'
mixed = [Piece(lines=cut[:20]), Piece(lines=cut[20:]), Piece(device=phone("behind-a-line"))]
result = devices.ImportDeviceStream(iter(mixed), **asked)
assert (result.lines, result.created) == (2, 2), result
assert devices.ImportDeviceStream(iter([]), **asked).lines == 0

for pieces, field in [
    ([Piece(options=pb.ImportOptions(format="csv")), Piece(device=phone("x"))], "device"),
    ([Piece(lines="\n"), Piece(options=dry)], "options"),
    ([Piece(options=pb.ImportOptions(format="xml"))], "format"),
]:
    code, details = refused(lambda: devices.ImportDeviceStream(iter(pieces), **asked))
    assert code == grpc.StatusCode.INVALID_ARGUMENT, (pieces, code)
    assert [one.field for one in details["BadRequest"].field_violations] == [field], (pieces, details)
wrong_key = {"metadata": [("authorization", "Bearer sk_none")], "timeout": DEADLINE_SECONDS}
code, details = refused(lambda: devices.ImportDeviceStream(phones(), **wrong_key))
assert (code, details["ErrorInfo"].reason) == (grpc.StatusCode.UNAUTHENTICATED, "unauthorized"), details

message = pb.SendMessageRequest(target=pb.Target(topic="news"), data={"k": "v"}, ttl_seconds=60)
sent = messages.SendMessage(message, **asked)
ledgers = list(campaigns.WatchLedger(pb.WatchLedgerRequest(campaign=sent.accepted.campaign), **asked))
last = ledgers[-1]
assert last.state == "finished" and last.HasField("ended_at") and last.balanced, last
assert last.audience == last.totals.accepted == COUNT, last
assert all(not one.HasField("ended_at") for one in ledgers[:-1]), ledgers
assert list(campaigns.WatchLedger(pb.WatchLedgerRequest(campaign=sent.accepted.id), **asked)) == [last]

message.send_at = (datetime.now(timezone.utc) + timedelta(days=1)).isoformat()
later = messages.SendMessage(message, **asked).accepted.campaign
watched = campaigns.WatchLedger(pb.WatchLedgerRequest(campaign=later), **asked)
assert next(watched).state == "scheduled"
campaigns.CancelCampaign(pb.CancelCampaignRequest(campaign=later), **asked)
assert [one.state for one in watched] == ["canceled"]
code, details = refused(
    lambda: next(campaigns.WatchLedger(pb.WatchLedgerRequest(campaign="cmp_0000000000009"), **asked))
)
assert (code, details["ErrorInfo"].reason) == (grpc.StatusCode.NOT_FOUND, "not_found"), details
print("streams of", grpc.__name__, grpc.__version__, "are served: it is content")
