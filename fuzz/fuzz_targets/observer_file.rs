//! The observer's file: any bytes are refused or read without harm.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_emulators::{Observer, ObserverConfig, ObserverFile};

const PAGE_BYTES: usize = 4096;
const HEAD_BYTES: usize = 64;

fuzz_target!(|input: &[u8]| {
    // The head, the sums and the slots each begin a page; the zeros between them are left out of the input.
    let (head, rest) = input.split_at(input.len().min(HEAD_BYTES));
    let (sums, slots) = rest.split_at(rest.len().min(HEAD_BYTES));
    let mut bytes = Vec::new();
    for part in [head, sums, slots] {
        bytes.extend_from_slice(part);
        bytes.resize(bytes.len().next_multiple_of(PAGE_BYTES), 0);
    }
    let path = std::env::temp_dir().join(format!("stentor-fuzz-{}", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    if let Ok(file) = ObserverFile::open(&path) {
        let _ = (file.totals(), file.lookup("token"));
        file.for_each(|_, _| {});
    }
    if let Ok(observer) = Observer::open(&ObserverConfig { path: Some(path.clone()), capacity_tokens: 8 }) {
        let _ = (observer.totals(), observer.lookup("token"));
    }
    let _ = std::fs::remove_file(&path);
});
