"""What the stories share: a channel to the server, its key, and what a refusal tells."""

import os
import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

# The modules that were made from the description stand in the working directory.
sys.path.insert(0, os.getcwd())

url, key = sys.argv[1:3]
address = url.split("://")[1]
metadata = [("authorization", f"Bearer {key}")]
DEADLINE_SECONDS = 20


def refused(call):
    """Returns the status of a call that must be refused, and its details by their kinds."""
    try:
        call()
    except grpc.RpcError as refusal:
        details = {}
        told = rpc_status.from_call(refusal)
        for one in told.details if told else []:
            kind = one.type_url.rsplit(".", 1)[1]
            details[kind] = getattr(error_details_pb2, kind)()
            assert one.Unpack(details[kind])
        return refusal.code(), details
    raise AssertionError("it is not refused")
