//! Input of a device over MCS, in pieces, and its earlier HTTP requests: parsed stanzas can be written and parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_gateway::mcs::McsReader;
use stentor_wire::mcs::{McsCheckinReply, McsCheckinRequest, McsStanza, find_frame};

const STANZA_MAX_BYTES: usize = 4_096;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let (mut whole, mut cut) = (McsReader::new(STANZA_MAX_BYTES), McsReader::new(STANZA_MAX_BYTES));
    whole.feed(bytes);
    let expected = drain(&mut whole);
    let mut found = Vec::new();
    for piece in bytes.chunks(usize::from(piece).max(1)) {
        cut.feed(piece);
        found.extend(drain(&mut cut));
    }
    assert_eq!(found, expected);
    found.iter().for_each(again);
    let _ = McsCheckinReply::read(bytes);
    if let Ok(request) = McsCheckinRequest::read(bytes) {
        assert_eq!(McsCheckinRequest::read(&request.write()), Ok(request));
    }
});

fn drain(reader: &mut McsReader) -> Vec<McsStanza> {
    std::iter::from_fn(|| reader.stanza().ok().flatten()).collect()
}

fn again(stanza: &McsStanza) {
    let mut bytes = Vec::new();
    stanza.write(&mut bytes);
    let frame = find_frame(&bytes, usize::MAX).expect("in order").expect("whole");
    let read = McsStanza::read(frame.tag, &bytes[frame.begin..frame.end]);
    assert_eq!(read.as_ref(), Ok(stanza));
    let acknowledged = match stanza {
        McsStanza::Iq(iq) => iq.acknowledged().unwrap_or_default(),
        _ => Vec::new(),
    };
    assert!(acknowledged.len() <= bytes.len());
}
