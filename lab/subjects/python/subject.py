"""A subject for the laboratory, with nothing but Python's standard library: REST with JSON, REST with XML, and XML-RPC.

XML is read by libexpat with callbacks, the parser behind Android's SAX; here it calls Python instead of Dalvik, so it shows
that parser's events and memory, not its speed on a phone.

Takes orders as LSP-1 has them (docs/lab/your-own-service.md). Usage: subject.py rest+json|rest+xml-sax|xmlrpc
"""

import http.client
import http.server
import json
import platform
import ssl
import struct
import sys
import threading
import time
import xml.parsers.expat
import xml.sax.saxutils
import xmlrpc.client

# seq, six times, status, flags, bytes; and seq, four times, two words of zero, status, flags, bytes.
CLIENT_SAMPLE = struct.Struct("<Q6qHHI")
SERVER_SAMPLE = struct.Struct("<Q6qHHI")
FIELDS = ["id", "name", "category", "description", "address", "city", "country",
          "latitude", "longitude", "hours", "phone", "website", "picture"]
FIELD_LETTERS = [6, 24, 12, 334, 32, 16, 12, 10, 10, 40, 16, 40, 48]


class Source:
    """Numbers and letters from a seed."""

    def __init__(self, seed):
        self.state = seed % 2**31

    def number(self):
        self.state = (1103515245 * self.state + 12345) % 2**31
        return self.state // 65536

    def letters(self, count):
        return "".join(chr(97 + self.number() % 26) for _ in range(count))

    def item(self):
        return {"id": self.number(), "name": self.letters(10), "price": self.number() / 4}

    def point(self):
        return {name: self.letters(count) for name, count in zip(FIELDS, FIELD_LETTERS)}


def made(wish):
    """Makes the entries that `KIND COUNT SEED` asks for."""
    kind, count, seed = wish.split(" ")
    source = Source(int(seed))
    name, make = {
        "Int": ("numbers", source.number),
        "String": ("texts", lambda: source.letters(10)),
        "Object": ("objects", source.item),
        "Point": ("points", source.point),
    }[kind]
    return {name: [make() for _ in range(int(count))]}


def paging(factors):
    """Gives the points that are asked for at a time, 0 for all, and the exchanges that bring all points."""
    page = int(factors.get("page", 0))
    return page, max(-(-int(factors.get("poi", 3)) // page), 1) if page else 1


def request_of(op, factors, base, seq):
    """Makes the request number `seq` of a run, as the kind of content and the content."""
    seed = base + seq
    source = Source(seed)
    if op == "echo":
        return {"payload": source.letters(int(factors.get("payload", 64)))}
    if op == "sort":
        return {"numbers": [source.number() for _ in range(int(factors.get("items", 20)))]}
    if op == "array":
        return {"payload": f"{factors.get('type', 'Int')} {factors.get('items', 20)} {seed}"}
    page, pages = paging(factors)
    if page:
        start = seq % pages * page
        return {"payload": f"Point {min(page, int(factors.get('poi', 3)) - start)} {base} {start}"}
    return {"payload": f"Point {factors.get('poi', 3)} {seed}"}


def answer_to(op, request):
    """Does what a server has to do."""
    if op == "echo":
        return request
    if op == "sort":
        return {"numbers": sorted(request["numbers"])}
    return made(request["payload"])


class Digest:
    """FNV-1a over the fields of all answers."""

    def __init__(self):
        self.state = 0xCBF29CE484222325

    def field(self, text):
        for byte in f"{text}\n".encode():
            self.state = (self.state ^ byte) * 0x100000001B3 % 2**64

    def add(self, content):
        for kind, value in content.items():
            if kind == "payload":
                self.field(value)
            elif kind in ("numbers", "texts"):
                for entry in value:
                    self.field(entry)
            elif kind == "objects":
                for entry in value:
                    self.field(entry["id"])
                    self.field(entry["name"])
                    self.field(round(entry["price"] * 4))
            else:
                for entry in value:
                    for name in FIELDS:
                        self.field(entry[name])


class Json:
    kind = "application/json"

    @staticmethod
    def write(_op, content):
        return json.dumps(content).encode()

    @staticmethod
    def read(_op, body):
        return json.loads(body)

    write_answer = write
    read_answer = read


class Xml:
    kind = "application/xml"
    entries = {"numbers": ("n", []), "texts": ("t", []), "objects": ("object", ["id", "name", "price"]),
               "points": ("point", FIELDS)}

    @classmethod
    def write(cls, _op, content):
        escape = xml.sax.saxutils.escape
        (kind, value), = content.items()
        if kind == "payload":
            inside = escape(value)
        else:
            name, fields = cls.entries[kind]
            entry = lambda one: "".join(f"<{f}>{escape(str(one[f]))}</{f}>" for f in fields) or escape(str(one))
            inside = "".join(f"<{name}>{entry(one)}</{name}>" for one in value)
        return f'<?xml version="1.0" encoding="UTF-8"?><{kind}>{inside}</{kind}>'.encode()

    @classmethod
    def read(cls, _op, body):
        path, text, fields, content = [], [], {}, {}

        def start(name, _attributes):
            path.append(name)
            text.clear()
            if len(path) == 1:
                content[name] = "" if name == "payload" else []
            elif path[1] != cls.entries[path[0]][0] or len(path) > 2 and name not in cls.entries[path[0]][1]:
                raise ValueError(f"<{name}> was not expected")

        def end(name):
            value, depth, kind = "".join(text), len(path), path[0]
            text.clear()
            path.pop()
            if depth == 3:
                fields[name] = {"id": int, "price": float}.get(name, str)(value) if kind == "objects" else value
            elif depth == 2:
                one = dict(fields) if fields else int(value) if kind == "numbers" else value
                content[kind].append(one)
                fields.clear()
            elif kind == "payload":
                content[kind] = value

        parser = xml.parsers.expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler = text.append
        parser.Parse(body, True)
        return content

    write_answer = write
    read_answer = read


class XmlRpc:
    kind = "text/xml"

    @staticmethod
    def write(op, content):
        return xmlrpc.client.dumps((content,), f"lab.{op}").encode()

    @staticmethod
    def read(op, body):
        (content,), method = xmlrpc.client.loads(body)
        if method != f"lab.{op}":
            raise ValueError(f"there is no method {method}")
        return content

    @staticmethod
    def write_answer(_op, content):
        return xmlrpc.client.dumps((content,), methodresponse=True).encode()

    @staticmethod
    def read_answer(_op, body):
        (content,), _ = xmlrpc.client.loads(body)
        return content


class Rows:
    """Points as rows of the SQLite file that the factor insert names; the tables are those of docs/lab/your-own-service.md."""

    def __init__(self, factors):
        import sqlite3  # Only who keeps rows needs it.

        self.resume = factors.get("sync") == "resume"
        self.page, self.pages = paging(factors)
        self.file = sqlite3.connect(factors["insert"])
        fields = ", ".join(f"{name} TEXT NOT NULL" for name in FIELDS)
        self.file.execute(f"CREATE TABLE IF NOT EXISTS points (number INTEGER PRIMARY KEY, {fields})")
        self.file.execute("CREATE TABLE IF NOT EXISTS sync (one INTEGER PRIMARY KEY CHECK (one = 1),"
                          " pages INTEGER NOT NULL, complete INTEGER NOT NULL)")
        with self.file:
            self.file.execute("INSERT OR IGNORE INTO sync VALUES (1, 0, 0)")

    def first(self):
        """Gives the number of the exchange to begin with: with sync=resume the page after the last one that is there."""
        if not self.resume:
            return 0
        return self.file.execute("SELECT CASE WHEN complete THEN 0 ELSE pages END FROM sync").fetchone()[0]

    def keep(self, seq, points):
        """Keeps a page and the note that it is there, all or nothing, and gives the time."""
        start, page = seq % self.pages * self.page, seq % self.pages + 1
        rows = ([number, *(point[name] for name in FIELDS)] for number, point in enumerate(points, start))
        with self.file:
            self.file.executemany(f"INSERT OR REPLACE INTO points VALUES (?{', ?' * len(FIELDS)})", rows)
            self.file.execute("UPDATE sync SET pages = ?, complete = ?", (page, page == self.pages))
        return time.monotonic_ns()


class Encrypted(http.client.HTTPConnection):
    """A connection that trusts one certificate, and only as that of the laboratory: the target itself has no name."""

    def __init__(self, host, port, certificate):
        super().__init__(host, port)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.load_verify_locations(certificate)

    def connect(self):
        super().connect()
        self.sock = self.context.wrap_socket(self.sock, server_hostname="lab")


class Server:
    """Answers one operation until it is stopped, and keeps samples."""

    def __init__(self, dialect, order):
        self.samples, self.lock, self.out = [], threading.Lock(), None
        host, port = order.get("bind", "127.0.0.1:0").rsplit(":", 1)
        handler = self.handler(dialect, order["op"])
        self.http = http.server.ThreadingHTTPServer((host, int(port)), handler)
        self.http.daemon_threads = True
        factors = order.get("factors", {})
        if factors.get("tls") == "on":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(factors["tls_certificate"], factors["tls_key"])
            # The thread of a connection agrees on it, so that others need not wait.
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def handler(self, dialect, op):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                times = [time.monotonic_ns(), 0, 0, 0]
                try:
                    request = dialect.read(op, body)
                    times[1] = time.monotonic_ns()
                    answer = answer_to(op, request)
                    times[2] = time.monotonic_ns()
                    status, answer = 200, dialect.write_answer(op, answer)
                except Exception as error:
                    print(error, file=sys.stderr)
                    status, answer = 400, b""
                times[3] = time.monotonic_ns()
                server.keep(times, status, len(body))
                self.send_response(status)
                self.send_header("Content-Type", dialect.kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        return Handler

    def keep(self, times, status, count):
        with self.lock:
            seq = len(self.samples)
            self.samples.append(SERVER_SAMPLE.pack(seq, *times, 0, 0, int(status != 200), 0, count))

    def arm(self, order):
        with self.lock:
            self.samples, self.out = [], order["out"]

    def stop(self):
        self.http.shutdown()
        if self.out:
            with open(self.out, "wb") as file:
                file.write(b"".join(self.samples))
        return {"report": "done", "n": len(self.samples), "errors": 0, "digest": ""}


class Client:
    """Makes exchanges, one after the other on one connection, or with connection=fresh on one for each."""

    def __init__(self, dialect, order):
        self.dialect, self.order, self.armed = dialect, order, None
        self.factors = factors = order.get("factors", {})
        self.fresh = factors.get("connection") == "fresh"
        self.rows = Rows(factors) if "insert" in factors and order["op"] == "points" else None
        host, port = order["target"].rsplit(":", 1)
        if factors.get("tls") == "on":
            self.connection = Encrypted(host, int(port), factors["tls_certificate"])
        else:
            self.connection = http.client.HTTPConnection(host, int(port))
        if not self.fresh:
            self.connection.connect()

    def arm(self, order):
        self.armed = order

    def go(self, t0_ns):
        begin, schedule = max(t0_ns, time.monotonic_ns()), self.armed["schedule"]
        digest, samples, errors, inserted = Digest(), [], 0, []
        first = self.rows.first() if self.rows else 0
        for seq in range(first, self.armed["count"]):
            intended = time.monotonic_ns()
            if schedule["kind"] == "open":
                intended = begin + (seq - first) * schedule["interval_ns"]
                time.sleep(max(0, intended - time.monotonic_ns()) / 1e9)
            try:
                times, count, answer = self.exchange(seq)
                inserted.append(self.rows.keep(seq, answer["points"]) if self.rows else 0)
                digest.add(answer)
                samples.append(CLIENT_SAMPLE.pack(seq, intended, *times, 0, 0, count))
            except Exception as error:
                print(error, file=sys.stderr)
                errors += 1
                inserted.append(0)
                samples.append(CLIENT_SAMPLE.pack(seq, intended, 0, 0, 0, 0, 0, 1, 0, 0))
            time.sleep(schedule.get("think_ns", 0) / 1e9)
        with open(self.armed["out"], "wb") as file:
            file.write(b"".join(samples))
        if self.rows:
            with open(self.armed["out"] + ".inserted", "wb") as file:
                file.write(struct.pack(f"<{len(inserted)}q", *inserted))
        n = len(samples) - errors
        return {"report": "done", "n": n, "errors": errors, "digest": f"{digest.state:016x}"}

    def exchange(self, seq):
        op = self.order["op"]
        request = request_of(op, self.factors, self.order["seed"], seq)
        times = [time.monotonic_ns()]
        body = self.dialect.write(op, request)
        times.append(time.monotonic_ns())
        headers = {"Content-Type": self.dialect.kind, **({"Connection": "close"} if self.fresh else {})}
        self.connection.request("POST", f"/{op}", body, headers)
        response = self.connection.getresponse()
        times.append(time.monotonic_ns())
        body = response.read()
        times.append(time.monotonic_ns())
        if response.status != 200:
            raise ValueError(f"answered {response.status}")
        answer = self.dialect.read_answer(op, body)
        times.append(time.monotonic_ns())
        if self.fresh:
            self.connection.close()
        return times, len(body), answer

    def stop(self):
        self.connection.close()
        return {"report": "done", "n": 0, "errors": 0, "digest": ""}


class Subject:
    def __init__(self, dialect):
        self.dialect, self.half = dialect, None

    def hello(self, _order):
        versions = {"python": platform.python_version(), "expat": xml.parsers.expat.EXPAT_VERSION}
        return {"report": "hello", "lsp": 1, "versions": versions, "clock": "CLOCK_MONOTONIC"}

    def prepare(self, order):
        if order["role"] == "server":
            self.half = Server(self.dialect, order)
            return {"report": "ready", "port": self.half.http.server_address[1]}
        self.half = Client(self.dialect, order)
        return {"report": "ready", "port": 0}

    def arm(self, order):
        self.half.arm(order)
        return {"report": "armed"}

    def go(self, order):
        return self.half.go(order["t0_ns"]) if isinstance(self.half, Client) else None

    def stop(self, _order):
        return self.half.stop() if self.half else {"report": "done", "n": 0, "errors": 0, "digest": ""}


def main():
    subject = Subject({"rest+json": Json, "rest+xml-sax": Xml, "xmlrpc": XmlRpc}[sys.argv[1]])
    for line in sys.stdin:
        order = json.loads(line)
        try:
            report = getattr(subject, order["order"])(order)
        except Exception as error:
            report = {"report": "error", "text": repr(error)}
        if report:
            print(json.dumps(report), flush=True)
        if order["order"] == "stop":
            break


main()
