"""A program that uses the client: story.py <sync|async>; STENTOR_URL, STENTOR_BUSY_URL and STENTOR_KEY say where and how."""

import asyncio
import os
import sys

from stentor import AsyncClient, Client, ConnectionFailed, Problem, Retries

URL, BUSY_URL, KEY = (os.environ[name] for name in ("STENTOR_URL", "STENTOR_BUSY_URL", "STENTOR_KEY"))
SOON = Retries(base_seconds=0.01)


def told_twice() -> None:
    """Uses the client that waits."""
    with Client(URL, KEY) as client, Client(BUSY_URL, KEY, retries=SOON) as busy:
        ids = [
            client.devices.register(platform="android", provider="null", token=f"token-{number}", user="anna")["id"]
            for number in range(5)
        ]
        assert client.topics.subscribe("news", devices=ids)["changed"] == 5
        assert [one["id"] for one in client.devices.iterate(limit=2)] == ids
        assert client.devices.change(ids[0], user=None).get("user") is None
        assert client.messages.send_dry_run(target={"topic": "news"}, data={"k": "v"})["audience"]["total"] == 5
        sent = busy.messages.send(target={"topic": "news"}, data={"k": "v & <w>"}, ttl_seconds=60)
        ledger = client.messages.ledger(sent["id"])
        assert ledger["balanced"] and ledger["message"] == sent["id"], ledger
        client.devices.remove(ids[4])
        client.services.publish("printer", kind="ipp", address="ipp://127.0.0.1/print", ttl_seconds=60)
        assert [one["address"] for one in client.services.iterate(kind="ipp")] == ["ipp://127.0.0.1/print"]
        client.services.remove("printer")
        try:
            client.devices.register(platform="vms", token="t")  # type: ignore[arg-type]
        except Problem as problem:
            assert (problem.status, problem.code, problem.field) == (422, "invalid_field", "platform"), problem
            assert problem.request_id
        else:
            raise AssertionError("it is not refused")
    for name in ("", ".", ".."):
        try:
            client.topics.show(name)
        except ValueError:
            continue
        raise AssertionError(f"{name!r} stands in an address")
    with Client("http://127.0.0.1:1", KEY, retries=Retries(attempts_max=2, base_seconds=0.01)) as nowhere:
        try:
            nowhere.devices.list()
        except ConnectionFailed as failure:
            assert not failure.was_sent
        else:
            raise AssertionError("there is a server at port 1")


async def told_to_asyncio() -> None:
    """Uses the client for asyncio."""
    async with AsyncClient(URL, KEY) as client, AsyncClient(BUSY_URL, KEY, retries=SOON) as busy:
        device = await client.devices.register(platform="android", provider="null", token="token-of-a-phone")
        assert [one["id"] async for one in client.devices.iterate(limit=1)] == [device["id"]]
        sent = await busy.messages.send(target={"device": device["id"]}, data={"k": "v"})
        assert (await client.messages.ledger(sent["id"]))["balanced"]
        try:
            await client.topics.show("nothing")
        except Problem as problem:
            assert (problem.status, problem.code) == (404, "not_found"), problem
        else:
            raise AssertionError("it is not refused")


if sys.argv[1] == "sync":
    told_twice()
else:
    asyncio.run(told_to_asyncio())
print("is content")
