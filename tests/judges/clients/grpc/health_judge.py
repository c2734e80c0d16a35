"""The health client of grpcio and its reflection client ask the server how it is: health_judge.py <url> <key>"""

import grpc
from calls import DEADLINE_SECONDS, address, refused
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

Response = health_pb2.HealthCheckResponse
channel = grpc.insecure_channel(address)
health = health_pb2_grpc.HealthStub(channel)


def asked(service):
    return health_pb2.HealthCheckRequest(service=service)


for service in ["", "stentor.v1.Messages"]:
    told = health.Check(asked(service), timeout=DEADLINE_SECONDS)
    assert told.status == Response.SERVING, told
code, details = refused(lambda: health.Check(asked("stentor.v1.Nothing"), timeout=DEADLINE_SECONDS))
assert (code, details["ErrorInfo"].reason) == (grpc.StatusCode.NOT_FOUND, "not_found"), details

watched = health.Watch(asked(""), timeout=DEADLINE_SECONDS)
assert next(watched).status == Response.SERVING
watched.cancel()
unknown = health.Watch(asked("stentor.v1.Nothing"), timeout=1.5)
assert next(unknown).status == Response.SERVICE_UNKNOWN
code, _ = refused(lambda: next(unknown))
assert code == grpc.StatusCode.DEADLINE_EXCEEDED, code

database = ProtoReflectionDescriptorDatabase(channel)
services = set(database.get_services())
assert {"grpc.health.v1.Health", "stentor.v1.Messages", "stentor.v1.Devices"} <= services, services
pool = DescriptorPool(database)
told = pool.FindServiceByName("grpc.health.v1.Health")
assert [(one.name, one.server_streaming) for one in told.methods] == [("Check", False), ("Watch", True)]
states = pool.FindMessageTypeByName("grpc.health.v1.HealthCheckResponse").enum_types_by_name["ServingStatus"]
assert states.values_by_name["SERVICE_UNKNOWN"].number == Response.SERVICE_UNKNOWN
print("the health client of", grpc.__name__, grpc.__version__, "is content")
