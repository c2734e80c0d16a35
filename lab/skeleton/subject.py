"""A subject to begin with: a server of `echo` and `sort` in JSON. docs/lab/your-own-service.md has its orders and samples."""

import json
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SAMPLE = struct.Struct("<Q6qHHI")  # seq, four times, two words of zero, status, flags, bytes
ANSWERS = {"echo": lambda request: request, "sort": lambda request: {"numbers": sorted(request["numbers"])}}
samples, out = [], None


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        times, status, answer = [time.monotonic_ns()] * 4, 200, b""
        try:
            request = json.loads(body)
            times[1] = time.monotonic_ns()
            content = ANSWERS[self.path[1:]](request)
            times[2] = time.monotonic_ns()
            answer = json.dumps(content).encode()
        except (KeyError, TypeError, ValueError):
            status = 400
        times[3] = time.monotonic_ns()
        samples.append((*times, 0, 0, int(status != 200), 0, len(body)))
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


for line in sys.stdin:
    order = json.loads(line)
    if order["order"] == "hello":
        report = {"report": "hello", "lsp": 1, "versions": {"my-framework": "1.0"}, "clock": "CLOCK_MONOTONIC"}
    elif order["order"] == "prepare":
        host, port = order["bind"].rsplit(":", 1)
        server = ThreadingHTTPServer((host, int(port)), Service)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        report = {"report": "ready", "port": server.server_address[1]}
    elif order["order"] == "arm":
        samples, out, report = [], order["out"], {"report": "armed"}
    elif order["order"] == "stop":
        if out:
            with open(out, "wb") as file:
                file.write(b"".join(SAMPLE.pack(seq, *one) for seq, one in enumerate(samples)))
        report = {"report": "done", "n": len(samples), "errors": 0, "digest": ""}
    if order["order"] != "go":  # To that a server says nothing.
        print(json.dumps(report), flush=True)
    if order["order"] == "stop":
        break
