//! The floors of the HTTP/2 client and of its codec.

use super::Floors;

pub(super) const HTTP2: Floors = Floors {
    folder: "crates/stentor-http2/src/",
    module: &[],
    floors: &[
        &["addresses", "buffer_pool", "gather", "latency", "limits", "line", "response", "stats", "waits"],
        &["congestion", "endpoint", "fault", "transport"],
        &["batch", "tls"],
        &["dial", "work"],
        &["pool"],
        &["connection", "sending"],
        &["fuzzing", "opening"],
        &["client"],
    ],
    back: &[],
    parent: &[],
};

/// Inside a connection: the protocol without IO, and the clock of the loop that runs it.
pub(super) const HTTP2_CONNECTION: Floors = Floors {
    folder: "crates/stentor-http2/src/connection/",
    module: &["connection"],
    floors: &[
        &["phase", "pulse", "streams", "violation"],
        &["peer"],
        &["blocked"],
        &["mux"],
        &["answers", "clock", "end", "requests"],
    ],
    back: &[],
    parent: &[
        ("Driver", "one driver, whose steps stand in a file each"),
        ("Turn", "one driver, whose steps stand in a file each"),
    ],
};

pub(super) const HTTP2_HPACK: Floors = Floors {
    folder: "crates/stentor-http2-codec/src/hpack/",
    module: &["hpack"],
    floors: &[
        &["field", "malformed"],
        &["huffman", "integer", "table"],
        &["stateless"],
        &["decoder", "encoder"],
        &["tests"],
    ],
    back: &[],
    parent: &[],
};
