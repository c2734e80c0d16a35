"""Drives the unmodified slixmpp through one scenario and prints one JSON line per step.

With the token of a device as fourth argument the scenario is that of a connection server with real devices.
"""

import asyncio
import json
import os
import sys
from xml.etree import ElementTree

import slixmpp
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

PORT, SENDER, KEY = int(sys.argv[1]), sys.argv[2], sys.argv[3]
GCM = "{google:mobile:data}gcm"
PATIENCE_S = 20


def report(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


async def attempt(step, call):
    try:
        report(step, ok=True, value=await call)
    except Exception as error:  # the test decides which error is right
        report(step, ok=False, error=type(error).__name__, detail=str(error))


class AppServer(slixmpp.ClientXMPP):
    def __init__(self, key):
        super().__init__(SENDER + "@gcm.googleapis.com", key, sasl_mech="PLAIN")
        self.enable_direct_tls, self.enable_starttls = True, False
        self.ca_certs = os.environ["SSL_CERT_FILE"]
        self.register_plugin("xep_0030")
        self.register_plugin("xep_0199")
        self.heard, self.news, self.state = [], asyncio.Condition(), asyncio.Queue()
        self.register_handler(Callback("gcm", MatchXPath("{jabber:client}message"), self.hear))
        self.add_event_handler("session_start", lambda _: self.state.put_nowait(True))
        self.add_event_handler("failed_all_auth", lambda _: self.state.put_nowait("refused"))
        self.add_event_handler("failed_auth", lambda _: self.state.put_nowait("refused"))

    def hear(self, message):
        failed = message.xml.get("type") == "error"
        text = "error " + message["error"]["condition"] if failed else json.loads(message.xml.findtext(GCM))
        asyncio.ensure_future(self.note(text))

    async def note(self, text):
        async with self.news:
            self.heard.append(text)
            self.news.notify_all()

    async def wait_for(self, fits):
        async with self.news:
            while True:
                for text in self.heard:
                    if fits(text):
                        return text
                await asyncio.wait_for(self.news.wait(), PATIENCE_S)

    async def heard_id(self, message_id):
        return await self.wait_for(lambda text: isinstance(text, dict) and text.get("message_id") == message_id)

    def say(self, body):
        message = self.make_message(mto=None)
        gcm = ElementTree.Element(GCM)
        gcm.text = json.dumps(body, ensure_ascii=False)
        message.append(gcm)
        message.send()

    async def ask(self, to, message_id, **more):
        self.say({"to": to, "message_id": message_id, "data": {"k": "v <&> ' ü"}, **more})
        return await self.heard_id(message_id)

    def acknowledge(self, to, message_id):
        self.say({"message_type": "ack", "to": to, "message_id": message_id})

    async def log_in(self):
        self.connect("localhost", PORT)
        return await asyncio.wait_for(self.state.get(), PATIENCE_S)


async def bad_ack(server):
    server.acknowledge("phone", "up-9")
    return await server.heard_id("up-9")


async def stanza_error(server):
    server.say({"to": "xmpp-one"})
    return await server.wait_for(lambda text: isinstance(text, str))


async def receipt(server):
    await server.ask("xmpp-two", "m-3", delivery_receipt_requested=True)
    heard = await server.heard_id("dr2:m-3")
    server.acknowledge("gcm.googleapis.com", "dr2:m-3")
    return heard


async def control(server):
    await server.ask("xmpp-three", "m-4")
    return await server.wait_for(lambda text: isinstance(text, dict) and text.get("message_type") == "control")


async def ping(server):
    return await server["xep_0199"].ping("gcm.googleapis.com", timeout=PATIENCE_S) >= 0


async def roster(server):
    return (await server.get_roster(timeout=PATIENCE_S))["type"] == "result"


async def receipt_of(server, token):
    await server.ask(token, "m-1", delivery_receipt_requested=True)
    heard = await server.heard_id("dr2:m-1")
    server.acknowledge(heard["from"], "dr2:m-1")
    return heard


async def control_of(server, token):
    # The device has the server stopped when it gets this.
    await server.ask(token, "m-last")
    return await server.wait_for(lambda text: isinstance(text, dict) and text.get("message_type") == "control")


async def with_devices(token):
    stranger = AppServer("wrong")
    await attempt("wrong key", stranger.log_in())
    await stranger.disconnect()
    first = AppServer(KEY)
    await attempt("login", first.log_in())
    await attempt("ping", ping(first))
    await attempt("roster", roster(first))
    await attempt("upstream", first.heard_id("up-1"))
    await first.heard_id("up-2")
    first.acknowledge(token, "up-1")
    await attempt("ack", first.ask(token, "m-0"))
    await attempt("nack", first.ask("no token", "m-2"))
    await attempt("bad ack", bad_ack(first))
    await attempt("stanza error", stanza_error(first))
    await first.disconnect()
    second = AppServer(KEY)
    await second.log_in()
    await attempt("resent", second.heard_id("up-2"))
    second.acknowledge(token, "up-2")
    await attempt("receipt", receipt_of(second, token))
    await attempt("control", control_of(second, token))
    await attempt("draining", second.ask(token, "m-late"))
    await second.disconnect()


async def main():
    first = AppServer(KEY)
    await attempt("login", first.log_in())
    await attempt("ping", ping(first))
    await attempt("roster", roster(first))
    await attempt("upstream", first.heard_id("up-1"))
    first.acknowledge("phone", "up-1")
    await attempt("ack", first.ask("xmpp-one", "m-1"))
    await attempt("nack", first.ask("gone", "m-2"))
    await attempt("bad ack", bad_ack(first))
    await attempt("stanza error", stanza_error(first))
    await attempt("receipt", receipt(first))
    await attempt("control", control(first))
    await attempt("draining", first.ask("xmpp-four", "m-5"))
    await first.disconnect()
    second = AppServer(KEY)
    await second.log_in()
    await attempt("resent", second.heard_id("up-2"))
    second.acknowledge("phone", "up-2")
    await attempt("after", second.ask("xmpp-after", "m-after"))
    await second.disconnect()
    stranger = AppServer("wrong")
    await attempt("wrong key", stranger.log_in())
    await stranger.disconnect()


asyncio.run(with_devices(sys.argv[4]) if len(sys.argv) > 4 else main())
