//! Entry points, credentials and attacks.

/// The protocol of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// A route of the API's port, with the type of its bodies.
    Http(&'static str),
    /// A port of its own: the file of the data directory with its address, and the first bytes of a connection.
    Port(&'static str, &'static [u8]),
    /// The raw socket, with the key in its hello.
    Socket,
    /// A route that becomes a WebSocket.
    WebSocket,
}

/// One way into the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AttackedEntry {
    /// Its name on the command line and in the report: method and path, or the protocol.
    pub(crate) name: &'static str,
    pub(crate) spoken: Spoken,
}

const fn http(name: &'static str, kind: &'static str) -> AttackedEntry {
    AttackedEntry { name, spoken: Spoken::Http(kind) }
}

const fn port(name: &'static str, file: &'static str, begins: &'static [u8]) -> AttackedEntry {
    AttackedEntry { name, spoken: Spoken::Port(file, begins) }
}

const JSON: &str = "application/json";
const XML: &str = "text/xml";
const FORM: &str = "application/x-www-form-urlencoded";
const GRPC: &str = "application/grpc";

/// One of each kind: every face and front, every listener, and each route without a key.
pub(crate) const ENTRY_POINTS: [AttackedEntry; 33] = [
    http("POST /v1/messages", JSON),
    http("POST /v1/messages/bulk", JSON),
    http("POST /v1/devices/import", "application/x-ndjson"),
    http("GET /v1/upstream", JSON),
    http("POST /rpc", XML),
    http("POST /soap", XML),
    http("POST /stentor.v1.Messages/SendMessage", GRPC),
    http("POST /stentor.v1.Devices/ImportDeviceStream", GRPC),
    http("POST /grpc.reflection.v1.ServerReflection/ServerReflectionInfo", GRPC),
    http("POST /grpc.health.v1.Health/Watch", GRPC),
    http("POST /api/push", JSON),
    http("POST /gcm/send", JSON),
    http("POST /v1/projects/nothing/messages:send", JSON),
    http("POST /iid/v1:batchAdd", JSON),
    http("POST /token", FORM),
    http("POST /gateway/v1/devices", JSON),
    http("POST /gateway/v1/upstream", JSON),
    http("GET /gateway/v1/messages", JSON),
    http("GET /gateway/v1/events", JSON),
    AttackedEntry { name: "GET /gateway/v1/autopush", spoken: Spoken::WebSocket },
    http("POST /gateway/v1/push/nothing", "application/octet-stream"),
    http("POST /fcm/send/nothing", "application/octet-stream"),
    http("POST /checkin", "application/x-protobuf"),
    http("POST /c2dm/register3", FORM),
    http("POST /v1/projects/nothing/installations", JSON),
    http("GET /metrics", JSON),
    http("GET /healthz", JSON),
    http("POST /nothing/is/here", JSON),
    http("GET /docs/scalar.js", JSON),
    AttackedEntry { name: "socket", spoken: Spoken::Socket },
    port("mqtt", "mqtt.addr", &[0x10, 0xff, 0x7f, 0, 4, b'M', b'Q', b'T', b'T']),
    port("mcs", "mcs.addr", &[41, 2, 0xff, 0x7f, 0x0a]),
    port("ccs", "ccs.addr", b"<stream:stream to='gcm.googleapis.com' xmlns='jabber:client' "),
];

/// The credential of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CredentialKind {
    None,
    Join,
    App,
}

impl CredentialKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::None, Self::Join, Self::App];

    /// Its name on the command line and in the report.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Join => "join",
            Self::App => "app",
        }
    }

    /// Returns its description for the command line's help.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::None => "No key",
            Self::Join => "The key with which devices of an app register",
            Self::App => "A key of an app's servers",
        }
    }
}

/// The unfinished part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttackKind {
    HalfBody,
    ZstdHead,
    GzipHead,
    LargeLength,
    Chunked,
    Streams,
    Nothing,
}

impl AttackKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 7] = [
        Self::HalfBody,
        Self::ZstdHead,
        Self::GzipHead,
        Self::LargeLength,
        Self::Chunked,
        Self::Streams,
        Self::Nothing,
    ];

    /// Its name on the command line and in the report.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::HalfBody => "half-body",
            Self::ZstdHead => "zstd-head",
            Self::GzipHead => "gzip-head",
            Self::LargeLength => "large-length",
            Self::Chunked => "chunked",
            Self::Streams => "streams",
            Self::Nothing => "nothing",
        }
    }

    /// Returns its description for the command line's help.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::HalfBody => "The first bytes of a body",
            Self::ZstdHead => "The head of a zstd frame that asks for a window of 2 MiB",
            Self::GzipHead => "The head of a gzip member",
            Self::LargeLength => "A large Content-Length, and no body",
            Self::Chunked => "The first of several chunks",
            Self::Streams => "Streams of one HTTP/2 connection without their bodies",
            Self::Nothing => "Connections that send nothing",
        }
    }
}
