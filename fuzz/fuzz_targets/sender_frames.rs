//! Input from a push service on a connection of ours: every request ends exactly once.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_http2::{Keep, fuzzing};

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    let keep = if first & 0x80 == 0 { Keep::All } else { Keep::Refusals };
    fuzzing::hear(bytes, usize::from(first & 0x7f) + 1, keep);
});
