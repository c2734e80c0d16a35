#!/usr/bin/env python3
"""Asks Stentor over its raw socket: socket_client.py [--ca FILE] HOST PORT KEY OPERATION [RECORD]"""
import json, socket, ssl, struct, sys


class Client:
    def __init__(self, host, port, key, tls=None, **hello):
        self.socket = socket.create_connection((host, port))
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self.replies, self.last_id = self.socket.makefile("rb"), 0
        self.write({"stentor": 1, "key": key, **hello})
        self.greeting = self.read()

    def write(self, message):
        body = json.dumps(message).encode()
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def read(self):
        (length,) = struct.unpack(">I", self.replies.read(4))
        return json.loads(self.replies.read(length))

    def ask(self, operation, record, **more):
        self.last_id += 1
        self.write({"id": self.last_id, "operation": operation, "record": record, **more})
        return self.read()


if __name__ == "__main__":
    tls = None
    if sys.argv[1:2] == ["--ca"]:  # over TLS, under the authority in this file
        tls = ssl.create_default_context(cafile=sys.argv[2])
        del sys.argv[1:3]
    host, port, key, operation, *record = sys.argv[1:]
    client = Client(host, int(port), key, tls)
    answer = client.ask(operation, json.loads(record[0]) if record else {})
    print(json.dumps(answer))
    sys.exit(1 if "error" in answer else 0)
