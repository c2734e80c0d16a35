//! Records in XML: any document is a record of an operation, or is refused; a parsed record can be written and parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use stentor_server::contract::description::description;
use stentor_server::face::record::Record;
use stentor_server::face::record::xml::{read_record, write_record};
use stentor_wire::DocumentLimits;
use stentor_wire::xml::dom::parse;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, document)) = bytes.split_first() else { return };
    let all = description();
    let record = &all.operations[usize::from(*first) % all.operations.len()].request;
    let limits = DocumentLimits { nodes_max: 10_000, ..DocumentLimits::default() };
    let Ok(element) = parse(document, &limits) else { return };
    let Ok(read) = read_record(&element, record, &all.shapes) else { return };
    let written = write_record("r", &read, record, &all.shapes).to_bytes().expect("a document");
    let element = parse(&written, &DocumentLimits::default()).expect("what was written is a document");
    let again = read_record(&element, record, &all.shapes).expect("what was written is a record");
    assert_eq!(present(Value::Object(again)), present(Value::Object(read)));
});

/// Removes values that XML cannot distinguish from absent ones.
fn present(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let there = |value: &Value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
            let fields = fields.into_iter().map(|(name, value)| (name, present(value)));
            Value::Object(fields.filter(|(_, value)| there(value)).collect::<Record>())
        }
        Value::Array(items) => items.into_iter().map(present).collect(),
        other => other,
    }
}
