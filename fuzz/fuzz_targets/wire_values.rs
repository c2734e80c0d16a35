//! JSON, Protocol Buffers and frames: parsed input can be written and parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_wire::{Content, DocumentLimits, frame::Frames, json, protobuf};

fuzz_target!(|bytes: &[u8]| {
    let limits = DocumentLimits::default();
    if let Ok(value) = json::read(bytes, &limits) {
        let again = json::write(&value).expect("what was read can be written");
        assert_eq!(json::read(&again, &limits), Ok(value));
    }
    if let Ok(content) = json::read_content(bytes, &limits) {
        let again = json::write_content(&content).expect("what was read can be written");
        assert_eq!(json::read_content(&again, &limits), Ok(content));
    }
    if let Ok(content) = protobuf::read(bytes, &limits) {
        let has_nan = matches!(&content, Content::Objects(items) if items.iter().any(|item| item.price.is_nan()));
        let again = protobuf::read(&protobuf::write(&content), &limits);
        assert!(has_nan || again == Ok(content));
    }
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let (mut whole, mut cut) = (Frames::new(limits), Frames::new(limits));
    whole.feed(bytes);
    let expected = drain(&mut whole);
    let mut found = Vec::new();
    for piece in bytes.chunks(usize::from(*piece).max(1)) {
        cut.feed(piece);
        found.extend(drain(&mut cut));
    }
    assert_eq!(found, expected);
});

fn drain(frames: &mut Frames) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| frames.frame().ok().flatten()).collect()
}
