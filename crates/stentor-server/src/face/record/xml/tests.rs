use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use serde_json::{Value, json};
use stentor_wire::DocumentLimits;
use stentor_wire::xml::dom::parse;

use super::{read_record, write_record};
use crate::contract::description::{Description, description};
use crate::contract::shape::{FieldShape, RecordShape, Shape};
use crate::contract::{Problem, ServiceResult};
use crate::face::record::Record;

fn read_as(record: &str, inside: &str) -> ServiceResult<Record> {
    let document = format!("<r xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>{inside}</r>");
    let element = parse(document.as_bytes(), &DocumentLimits::default()).expect("a document");
    let record = description().record(record).expect("a record");
    read_record(&element, record, &description().shapes)
}

fn refused(inside: &str) -> (String, Problem) {
    let problem = read_as("SendMessageRequest", inside).expect_err("a refusal");
    (problem.field.clone().unwrap_or_default(), problem)
}

#[test]
fn fields_stand_in_any_order_and_a_choice_without_content_is_its_word() {
    let inside = "<data><entry><value> v </value><key>k</key></entry></data><android>{\"a\":1}</android>\
                  <ttl_seconds> 60 </ttl_seconds><target><everyone>true</everyone></target>";
    let read = read_as("SendMessageRequest", inside).expect("a record");
    let wanted = json!({"data": {"k": " v "}, "android": {"a": 1}, "ttl_seconds": 60, "target": "everyone"});
    assert_eq!(Value::Object(read), wanted);
}

#[test]
fn elements_that_repeat_are_a_list_and_nil_is_null() {
    let inside = "<topics>a</topics><token>t</token><topics>b</topics><user i:nil='true'/>";
    let read = read_as("RegisterDeviceRequest", inside).expect("a record");
    assert_eq!(Value::Object(read), json!({"topics": ["a", "b"], "token": "t", "user": null}));
    let cleared = read_as("ChangeDeviceRequest", "<tags i:nil='1'/>").expect("a record");
    assert_eq!(Value::Object(cleared), json!({"tags": []}));
}

#[test]
fn problems_name_the_field_with_its_path() {
    let (field, unknown) = refused("<priorty>high</priorty>");
    assert_eq!((field.as_str(), unknown.hint.as_deref()), ("priorty", Some("did you mean `priority`?")));
    assert_eq!(refused("<ttl_seconds>soon</ttl_seconds>").0, "ttl_seconds");
    assert_eq!(refused("<ttl_seconds>9223372036854775808</ttl_seconds>").0, "ttl_seconds");
    assert_eq!(refused("<ttl_seconds>1</ttl_seconds><ttl_seconds>1</ttl_seconds>").0, "ttl_seconds");
    assert_eq!(refused("<target><tokn/></target>").0, "target.tokn");
    assert_eq!(refused("<target><everyone>false</everyone></target>").0, "target.everyone");
    assert_eq!(refused("<target/>").0, "target");
    assert_eq!(refused("<target><topic>a</topic><everyone>true</everyone></target>").0, "target");
    assert_eq!(refused("<data><entry><key>k</key></entry></data>").0, "data.entry[0]");
    let twice = "<entry><key>k</key><value/></entry>".repeat(2);
    assert_eq!(refused(&format!("<data>{twice}</data>")).0, "data.entry[1].key");
    assert_eq!(refused("<android>{</android>").0, "android");
    assert_eq!(refused("<collapse_key><b/></collapse_key>").0, "collapse_key");
    assert_eq!(refused("<target>everyone</target>").0, "target");
    assert_eq!(refused("<x:data xmlns:x='urn:other'/>").0, "data");
}

#[test]
fn what_xml_cannot_carry_is_written_as_a_replacement() {
    let record = description().record("DeviceTopics").expect("a record");
    let fields = json!({"topics": ["a\u{1}b\u{ffff}"]});
    let element = write_record("r", fields.as_object().expect("a record"), record, &description().shapes);
    let bytes = element.to_bytes().expect("a document");
    assert!(String::from_utf8(bytes).expect("text").contains("<topics>a\u{fffd}b\u{fffd}</topics>"));
}

#[test]
fn no_list_holds_a_list_and_no_map_one_either() {
    for record in description().records() {
        for field in &record.fields {
            if let Shape::List(inner) | Shape::Map(inner) = &field.shape {
                assert!(!matches!(**inner, Shape::List(_)), "{}.{}", record.name, field.name);
            }
        }
    }
}

/// Makes texts of any characters that XML can carry.
fn words() -> BoxedStrategy<String> {
    let letter = any::<char>().prop_filter("allowed", |letter| stentor_wire::xml::is_allowed(*letter));
    vec(letter, 0..8).prop_map(|letters| letters.into_iter().collect()).boxed()
}

fn values(shape: &Shape, description: &'static Description, depth: usize) -> BoxedStrategy<Value> {
    match shape {
        Shape::Text => words().prop_map(Value::from).boxed(),
        Shape::Int => any::<i64>().prop_map(Value::from).boxed(),
        Shape::Double => (-1e12..1e12_f64).prop_map(Value::from).boxed(),
        Shape::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Shape::Json => {
            (words(), any::<i64>()).prop_map(|(text, number)| json!({"t": text, "n": [number]})).boxed()
        }
        Shape::List(inner) => vec(values(inner, description, depth), 1..3).prop_map(Value::from).boxed(),
        Shape::Map(inner) => btree_map(words(), values(inner, description, depth), 0..3)
            .prop_map(|entries| Value::Object(entries.into_iter().collect()))
            .boxed(),
        Shape::Record(name) => {
            let record = description.record(name).expect("a record");
            match record.is_choice {
                true => choices(record, description, depth + 1),
                false => records(record, description, depth + 1).prop_map(Value::Object).boxed(),
            }
        }
    }
}

/// Makes one of the forms of a choice.
fn choices(
    record: &'static RecordShape,
    description: &'static Description,
    depth: usize,
) -> BoxedStrategy<Value> {
    let form = move |field: &'static FieldShape| match field.shape {
        Shape::Bool => Just(Value::from(field.name.as_str())).boxed(),
        _ => values(&field.shape, description, depth).prop_map(|value| json!({&field.name: value})).boxed(),
    };
    select(record.fields.iter().collect::<Vec<_>>()).prop_flat_map(form).boxed()
}

/// Makes records of a shape.
fn records(
    record: &'static RecordShape,
    description: &'static Description,
    depth: usize,
) -> BoxedStrategy<Record> {
    let one = |field: &'static FieldShape| {
        let value = values(&field.shape, description, depth);
        let value = match field.is_required {
            true => value.prop_map(Some).boxed(),
            false => proptest::option::of(value).boxed(),
        };
        value.prop_map(move |value| value.map(|value| (field.name.clone(), value)))
    };
    let fields: Vec<_> = record.fields.iter().map(one).collect();
    fields.prop_map(|fields| fields.into_iter().flatten().collect()).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(seed in any::<prop::sample::Index>(), flag in any::<bool>()) {
        let all = &description().operations;
        let one = &all[seed.index(all.len())];
        let record = if flag { &one.request } else { &one.reply };
        let mut runner = proptest::test_runner::TestRunner::default();
        let fields = records(record, description(), 0).new_tree(&mut runner).expect("a record").current();
        let bytes = write_record("r", &fields, record, &description().shapes).to_bytes().expect("a document");
        let element = parse(&bytes, &DocumentLimits::default()).expect("a document");
        let read = read_record(&element, record, &description().shapes);
        prop_assert_eq!(Value::Object(read.expect("a record")), Value::Object(fields));
    }
}
