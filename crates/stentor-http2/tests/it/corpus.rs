//! The fuzzer's corpus of inputs that reached new code, replayed without the fuzzer.

use std::path::Path;

use stentor_http2::{Keep, fuzzing};

/// Decodes hexadecimal digits.
fn bytes(line: &str) -> Vec<u8> {
    let digits = line.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("digits")).collect()
}

#[test]
fn every_input_that_the_fuzzer_kept_ends_every_request() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/sender_frames.hex.zst");
    let corpus = zstd::decode_all(&*std::fs::read(corpus).expect("readable")).expect("zstd");
    let corpus = String::from_utf8(corpus).expect("digits");
    assert!(corpus.lines().count() > 500, "the corpus is there");
    for input in corpus.lines().map(bytes) {
        // Reads its input like the fuzz target `sender_frames`.
        let Some((first, said)) = input.split_first() else { continue };
        let keep = if first & 0x80 == 0 { Keep::All } else { Keep::Refusals };
        fuzzing::hear(said, usize::from(first & 0x7f) + 1, keep);
    }
}
