//! The blobs stored per chunk: any bytes are refused, or decode to a value that encodes the same way.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_core::{chunk, delivery};

fuzz_target!(|input: (u16, &[u8])| {
    let (count, bytes) = input;
    if let Some(records) = delivery::decode_records(bytes, usize::from(count)) {
        let packed = delivery::encode_records(&records);
        assert_eq!(delivery::decode_records(&packed, records.len()), Some(records));
    }
    if let Some(devices) = chunk::decode_devices(bytes) {
        assert!(devices.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(chunk::decode_devices(&chunk::encode_devices(&devices)), Some(devices));
    }
});
