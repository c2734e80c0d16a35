use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::devices::DeviceChange;
use super::super::shape::CLEAR;
use super::*;

#[test]
fn every_operation_and_every_field_has_a_number_that_no_other_has() {
    let description = description();
    let numbers = &description.numbers;
    assert_eq!(
        *numbers,
        numbers.clone().extended(description),
        "write `stentor contract numbers` into numbers.toml"
    );
    let all: BTreeSet<_> = numbers.operations.values().collect();
    assert_eq!(all.len(), numbers.operations.len());
    for (record, fields) in &numbers.records {
        assert_eq!(fields.values().collect::<BTreeSet<_>>().len(), fields.len(), "{record}");
    }
}

#[test]
fn no_record_has_a_field_twice_and_what_it_refers_to_is_known() {
    fn check(shape: &Shape, description: &Description) {
        match shape {
            Shape::List(inner) | Shape::Map(inner) => check(inner, description),
            Shape::Record(name) => assert!(description.record(name).is_some(), "{name}"),
            _ => {}
        }
    }
    let description = description();
    for record in description.records() {
        let names: BTreeSet<_> = record.fields.iter().map(|field| &field.name).collect();
        assert_eq!(names.len(), record.fields.len(), "{record:?}");
        record.fields.iter().for_each(|field| check(&field.shape, description));
        assert!(record.clear_field().is_none() || record.field(CLEAR).is_none(), "{record:?}");
    }
}

#[test]
fn records_of_one_name_are_one() {
    let description = description();
    let mut known = std::collections::BTreeMap::new();
    for one in &description.operations {
        for record in [&one.request, &one.reply] {
            let same = known.entry(&record.name).or_insert(record);
            assert_eq!(*same, record);
            assert!(
                description.shapes.record(&record.name).is_none_or(|inner| inner == record),
                "{}",
                record.name
            );
        }
    }
}

#[test]
fn a_target_is_a_choice_and_overrides_stand_beside_the_fields_of_a_message() {
    let description = description();
    let target = description.record("Target").expect("a record");
    assert!(target.is_choice);
    assert_eq!(target.field("everyone").map(|field| &field.shape), Some(&Shape::Bool));
    assert_eq!(target.field("token").map(|field| &field.shape), Some(&Shape::Record("TokenTarget".into())));
    let send = description.record("SendMessageRequest").expect("a record");
    let shape_of = |name: &str| send.field(name).map(|field| field.shape.clone());
    assert_eq!(shape_of("data"), Some(Shape::Map(Box::new(Shape::Text))));
    assert_eq!(shape_of("android"), Some(Shape::Json));
    assert_eq!(shape_of("ttl_seconds"), Some(Shape::Int));
    assert_eq!(shape_of("idempotency_key"), Some(Shape::Text));
    assert!(send.field("target").is_some_and(|field| field.is_required));
}

#[test]
fn what_can_be_cleared_of_a_device_is_what_null_or_the_empty_list_changes() {
    let record = description().record("ChangeDeviceRequest").expect("a record");
    let decoded = |json: Value| serde_json::from_value::<DeviceChange>(json).ok();
    let nothing = decoded(json!({}));
    for field in record.fields.iter().filter(|field| !["device", "app"].contains(&field.name.as_str())) {
        let cleared = if matches!(field.shape, Shape::List(_)) { json!([]) } else { Value::Null };
        let changes = decoded(json!({ field.name.clone(): cleared })) != nothing;
        assert_eq!(field.is_clearable, changes, "{}", field.name);
    }
}

#[test]
fn streams_stand_for_operations_and_what_they_ask_and_reply_has_numbers() {
    let description = description();
    assert_eq!(description.streams.len(), super::streams::STREAMS.len());
    for one in &description.streams {
        let behind = description.operations.iter().find(|two| two.facts.name == one.facts.operation);
        assert_eq!(behind.map(|two| &two.reply), Some(&one.reply), "{}", one.facts.name);
        assert!(description.operations.iter().all(|two| two.facts.name != one.facts.name));
        assert!(description.numbers.records.contains_key(&one.request.name), "{}", one.request.name);
    }
}
