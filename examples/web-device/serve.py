"""Serves this folder, and hands what is below /gateway/ on to a Stentor server, so that page and gateway are one origin.

    python3 serve.py http://127.0.0.1:8080 [port]
"""

import http.client
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

HANDED_ON = ("Authorization", "Content-Type", "Last-Event-ID")


class Handler(SimpleHTTPRequestHandler):
    def __init__(self, *arguments, server_url, **options):
        self.stentor = urlsplit(server_url)
        super().__init__(*arguments, directory=Path(__file__).parent, **options)

    def do_GET(self):
        if self.path.startswith("/gateway/"):
            self.hand_on()
        else:
            super().do_GET()

    def hand_on(self):
        is_encrypted = self.stentor.scheme == "https"
        connect = http.client.HTTPSConnection if is_encrypted else http.client.HTTPConnection
        connection = connect(self.stentor.netloc)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: self.headers[name] for name in HANDED_ON if self.headers[name]}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "text/plain"))
        self.end_headers()
        # As it comes: a stream of events has no end.
        while piece := answer.read1():
            self.wfile.write(piece)
            self.wfile.flush()
        connection.close()

    do_POST = do_PUT = do_DELETE = hand_on


if __name__ == "__main__":
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
    served = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, server_url=sys.argv[1]))
    print(f"http://127.0.0.1:{served.server_port}/", flush=True)
    served.serve_forever()
