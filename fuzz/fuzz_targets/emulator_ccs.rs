//! XMPP streams to CCS: bytes in pieces are read like the same bytes at once, and the responses are well-formed.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_emulators::fuzzing::{CcsWire, stream_in_pieces};
use stentor_emulators::{CcsConfig, ObserverConfig};

const HEAD: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";
const LOGIN: &str = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>ADQ3MTEAa2V5</auth>";
const BIND: &str = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
const MESSAGE: &str = "<message id='m'><gcm xmlns='google:mobile:data'>";

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, piece_bytes], bytes)) = input.split_first_chunk::<2>() else { return };
    let piece_bytes = usize::from(piece_bytes) + 1;
    let whole = stream_in_pieces(bytes, bytes.len());
    assert_eq!(stream_in_pieces(bytes, piece_bytes), whole, "pieces of {piece_bytes}");
    let observer = ObserverConfig { path: None, capacity_tokens: 64 };
    let mut wire = CcsWire::new(CcsConfig { observer, ..CcsConfig::default() }).unwrap();
    // The input is sent on a new connection, within a stream, after a login, or as the text of an app server's message.
    let before: &[&str] = match kind % 4 {
        0 => &[],
        1 => &[HEAD],
        2 => &[HEAD, LOGIN, HEAD, BIND],
        _ => &[HEAD, LOGIN, HEAD, BIND, MESSAGE],
    };
    let mut said = Vec::new();
    for text in before {
        said.extend(wire.feed(text.as_bytes()).expect("what comes before is in order"));
    }
    for piece in bytes.chunks(piece_bytes) {
        let Some(answer) = wire.feed(piece) else { break };
        said.extend(answer);
    }
    let said = String::from_utf8(said).expect("what is answered is UTF-8");
    for stream in said.split("<?xml").filter(|stream| !stream.is_empty()) {
        stream_in_pieces(format!("<?xml{stream}").as_bytes(), 4096).expect("what is answered is well-formed");
    }
});
