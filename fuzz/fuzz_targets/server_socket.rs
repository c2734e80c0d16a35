//! Input on the raw socket: frames in pieces, the hello, and requests in both encodings.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_server::face::socket::{FrameEncoding, Hello};
use stentor_wire::DocumentLimits;
use stentor_wire::frame::{self, Frames};

const LIMITS: DocumentLimits =
    DocumentLimits { document_max_bytes: 65_536, depth_max: 64, nodes_max: 100_000, attributes_max: 32 };

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let mut frames = Frames::new(LIMITS);
    for piece in bytes.chunks(usize::from(piece).max(1)) {
        frames.feed(piece);
        loop {
            match frames.frame() {
                Ok(Some(payload)) => read(&payload),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    read(bytes);
});

fn read(payload: &[u8]) {
    let _ = Hello::read(payload);
    for encoding in [FrameEncoding::Json, FrameEncoding::Protobuf] {
        if let Err(unread) = encoding.read(payload) {
            let refusal = encoding.write(unread.id, "", &Err(unread.problem));
            assert!(frame::write(&refusal).is_ok());
        }
    }
}
