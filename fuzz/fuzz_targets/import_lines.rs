//! Bodies of an import: every line counts as good or bad, independent of the positions at which the stream is split.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_server::service::{ERRORS_MAX_COUNT, Format, examine};

fuzz_target!(|body: &[u8]| {
    for format in [Format::Ndjson, Format::Csv] {
        let Ok(whole) = examine(format, [body]) else {
            assert!(format == Format::Csv, "only a table can fail as a whole");
            continue;
        };
        assert_eq!(whole.lines, whole.valid + whole.failed);
        assert_eq!(whole.errors.len() as u64, whole.failed.min(ERRORS_MAX_COUNT as u64));
        assert!(whole.errors.is_sorted_by(|earlier, later| earlier.line < later.line));
        let lines = body.split_inclusive(|byte| *byte == b'\n');
        assert_eq!(examine(format, lines).unwrap(), whole);
    }
});
