"""Subscribes with the unmodified paho-mqtt in every way that MQTT has, and prints which last states come: one JSON line per step."""

import json
import queue
import sys

from paho.mqtt import client as mqtt
from paho.mqtt.subscribeoptions import SubscribeOptions

PORT, TOKEN, SECRET, VERSION = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
IS_5 = VERSION == "5"
SECONDS_MAX = 30
ALWAYS, WHEN_NEW, NEVER = 0, 1, 2


class Device:
    """A new session of the device."""

    def __init__(self):
        protocol, session = (mqtt.MQTTv5, {}) if IS_5 else (mqtt.MQTTv311, {"clean_session": True})
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="judge", protocol=protocol, **session)
        self.client.username_pw_set(TOKEN, SECRET)
        self.messages, self.answers = queue.Queue(), queue.Queue()
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)
        self.client.on_subscribe = lambda _c, _u, _m, codes, _p: self.answers.put([code.value for code in codes])
        self.client.on_connect = lambda _c, _u, flags, code, _p: self.answers.put((flags.session_present, code.value))
        self.client.connect("127.0.0.1", PORT, keepalive=30, **({"clean_start": True} if IS_5 else {}))
        self.client.loop_start()
        assert self.answers.get(timeout=SECONDS_MAX) == (False, 0)

    def subscribe(self, step, filter, handling=ALWAYS, as_published=False):
        if IS_5:
            options = SubscribeOptions(qos=1, retainAsPublished=as_published, retainHandling=handling)
            self.client.subscribe(filter, options=options)
        else:
            self.client.subscribe(filter, qos=1)
        assert self.answers.get(timeout=SECONDS_MAX) == [1]
        report(step, [self.seen(message) for message in self.all_there()])

    def all_there(self):
        # What belongs to the subscription comes before the answer to what is said after it.
        self.client.publish("upstream/done", "{}", qos=1).wait_for_publish(SECONDS_MAX)
        while not self.messages.empty():
            yield self.messages.get()

    def next(self):
        return self.seen(self.messages.get(timeout=SECONDS_MAX))

    def seen(self, message):
        return [message.topic, json.loads(message.payload)["id"], message.retain]

    def leave(self):
        self.client.disconnect()
        self.client.loop_stop()


def report(step, value):
    print(json.dumps({"step": step, "value": value}), flush=True)


device = Device()
device.subscribe("first", "topics/door")
device.subscribe("again", "topics/door")
if IS_5:
    device.subscribe("was there", "topics/door", WHEN_NEW)
    device.subscribe("never", "topics/door", NEVER)
device.leave()
for filter in ["topics/door", "topics/+", "topics/#", "#"]:
    device = Device()
    device.subscribe(f"new session, {filter}", filter)
    device.leave()
    if IS_5:
        device = Device()
        device.subscribe(f"when new, {filter}", filter, WHEN_NEW)
        device.leave()
        device = Device()
        device.subscribe(f"never, {filter}", filter, NEVER)
        device.leave()
device = Device()
device.subscribe("as published", "topics/door", NEVER, as_published=True)
assert sys.stdin.readline()
report("sent later", device.next())
device.leave()
