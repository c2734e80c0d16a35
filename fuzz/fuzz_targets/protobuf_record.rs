//! Records in Protocol Buffers: any bytes are a record of an operation or of a stream, or are refused; a parsed record can be written and
//! parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_server::contract::description::description;
use stentor_server::face::record::protobuf::Schema;
use stentor_wire::DocumentLimits;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, message)) = bytes.split_first() else { return };
    let all = description();
    let operations = all.operations.iter().map(|one| &one.request.name);
    let names: Vec<_> = operations.chain(all.streams.iter().map(|one| &one.request.name)).collect();
    let name = names[usize::from(*first) % names.len()];
    let limits = DocumentLimits { nodes_max: 10_000, ..DocumentLimits::default() };
    let Ok(read) = Schema::get().read(name, message, &limits) else { return };
    let written = Schema::get().write(name, &read).expect("what was read can be written");
    let again = Schema::get().read(name, &written, &DocumentLimits::default());
    assert_eq!(again.as_ref(), Ok(&read), "{name}");
});
