"""Drives the unmodified paho-mqtt through one device's scenario and prints one JSON line per step."""

import json
import queue
import sys
import time

from paho.mqtt import client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

PORT, TOKEN, SECRET, VERSION = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
IS_5 = VERSION == "5"
SECONDS_MAX = 30


def report(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def told():
    """Waits for the test's word."""
    assert sys.stdin.readline()


class Device:
    def __init__(self, secret=SECRET, is_kept=True, will=None):
        protocol = mqtt.MQTTv5 if IS_5 else mqtt.MQTTv311
        session = {} if IS_5 else {"clean_session": not is_kept}
        self.events = queue.Queue()
        self.is_kept = is_kept
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="judge", protocol=protocol, **session)
        self.client.username_pw_set(TOKEN, secret)
        if will:
            self.client.will_set(will, payload="{}", qos=1)
        put = self.events.put
        self.client.on_connect = lambda _c, _u, flags, code, _p: put((flags.session_present, code.value))
        self.client.on_subscribe = lambda _c, _u, _m, codes, _p: put([code.value for code in codes])
        self.client.on_unsubscribe = lambda _c, _u, _m, codes, _p: put([code.value for code in codes])
        self.client.on_message = lambda _c, _u, message: put(message)

    def next(self):
        return self.events.get(timeout=SECONDS_MAX)

    def connect(self):
        extras = {}
        if IS_5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 3600 if self.is_kept else 0
            extras = {"clean_start": not self.is_kept, "properties": properties}
        self.client.connect("127.0.0.1", PORT, keepalive=30, **extras)
        self.client.loop_start()
        return self.next()

    def message(self):
        message = self.next()
        facts = {"topic": message.topic, "qos": message.qos, "retain": message.retain}
        facts["payload"] = json.loads(message.payload)
        if IS_5:
            facts["expiry"] = message.properties.MessageExpiryInterval
            facts["properties"] = dict(message.properties.UserProperty)
        return facts

    def leave(self, is_over=False):
        """Ends the connection, and with it the session where MQTT has a word for that."""
        extras = {}
        if IS_5 and is_over:
            extras = {"properties": Properties(PacketTypes.DISCONNECT)}
            extras["properties"].SessionExpiryInterval = 0
        self.client.disconnect(**extras)
        self.client.loop_stop()


refused = Device(secret="wrong")
report("refused", value=refused.connect())
refused.client.loop_stop()

device = Device()
report("connected", value=device.connect())
device.client.subscribe([("messages/#", 1), ("topics/news", 1)])
report("subscribed", value=device.next())
report("to the device", value=device.message())
report("to the topic", value=device.message())
device.client.subscribe([("topics/door", 1)])
report("last topics", value=device.next())
report("last state", value=device.message())
device.client.publish("upstream/door", '{"open":"true"}', qos=1).wait_for_publish(SECONDS_MAX)
report("published")
device.leave()
report("left")
told()
device = Device()
report("again", value=device.connect())
report("while away", value=device.message())
device.client.unsubscribe("topics/news")
report("unsubscribed", value=device.next())
device.leave(is_over=True)

# The server may be told of the end after it has heard of the next connection: then that one ends the session.
until = time.monotonic() + SECONDS_MAX
while True:
    dying = Device(is_kept=IS_5, will="upstream/gone")
    connected = dying.connect()
    if not connected[0] or time.monotonic() > until:
        break
    dying.leave(is_over=True)
report("dying", value=connected)
# Without a DISCONNECT: the program ends.
