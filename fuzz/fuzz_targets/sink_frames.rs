//! Frames and header blocks on a connection to a sink: any bytes in any pieces end in order, and the responses are whole frames.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_emulators::fuzzing::SinkWire;
use stentor_emulators::policy::AnswerLatency;
use stentor_emulators::{ObserverConfig, SinkConfig};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const HEADER_BYTES: usize = 9;

fn check(mut said: &[u8]) {
    while !said.is_empty() {
        let length = u32::from_be_bytes([0, said[0], said[1], said[2]]) as usize;
        assert!(length <= 16 * 1024, "a frame above what every peer takes");
        said = &said[HEADER_BYTES + length..];
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&[piece_bytes, streams, latency], frames)) = input.split_first_chunk::<3>() else { return };
    let config = SinkConfig {
        observer: Some(ObserverConfig { path: None, capacity_tokens: 100 }),
        max_concurrent_streams: u32::from(streams),
        latency: (latency % 2 == 1).then_some(AnswerLatency::Fixed { ms: 1.0 }),
        ..SinkConfig::default()
    };
    let mut wire = SinkWire::new(&config).unwrap();
    check(&wire.feed(PREFACE));
    for piece in frames.chunks(usize::from(piece_bytes) * 8 + 1) {
        check(&wire.feed(piece));
    }
});
