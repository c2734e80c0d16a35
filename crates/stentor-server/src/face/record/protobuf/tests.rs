use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use stentor_wire::protobuf::fields::{put_field, put_number};

use super::*;
use crate::contract::shape::{FieldShape, Shape};

/// Source of a test's values. Each choice takes a byte.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn take(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn text(&mut self) -> String {
        (0..self.take() % 4).map(|_| char::from_u32(u32::from(self.take()) * 97).unwrap_or('x')).collect()
    }

    fn value(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::Text => self.text().into(),
            Shape::Int => i64::from_le_bytes(std::array::from_fn(|_| self.take())).into(),
            Shape::Double => (f64::from(self.take()) / 7.0 - 9.0).into(),
            Shape::Bool => self.take().is_multiple_of(2).into(),
            Shape::Json => json!({"k": [self.text(), null, self.take()]}),
            Shape::List(inner) => (0..=self.take() % 3).map(|_| self.value(inner)).collect(),
            Shape::Map(inner) => {
                let entries = (0..=self.take() % 3).map(|_| (self.text(), self.value(inner)));
                Value::Object(entries.collect())
            }
            Shape::Record(name) => self.record(description().record(name).expect("a record")),
        }
    }

    fn record(&mut self, shape: &RecordShape) -> Value {
        if shape.is_choice {
            let field = &shape.fields[usize::from(self.take()) % shape.fields.len()];
            return match field.shape {
                Shape::Bool => field.name.clone().into(),
                _ => json!({ field.name.clone(): self.value(&field.shape) }),
            };
        }
        let is_there =
            |field: &&FieldShape, source: &mut Self| field.is_required || !source.take().is_multiple_of(3);
        let mut fields = Record::new();
        for field in &shape.fields {
            if field.is_clearable && self.take().is_multiple_of(4) {
                let is_list = matches!(field.shape, Shape::List(_));
                fields.insert(field.name.clone(), if is_list { json!([]) } else { Value::Null });
            } else if is_there(&field, self) {
                fields.insert(field.name.clone(), self.value(&field.shape));
            }
        }
        Value::Object(fields)
    }
}

fn limits() -> DocumentLimits {
    DocumentLimits::default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again_whatever_the_record(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for shape in description().records() {
            // A choice without content is a word in JSON, and no record of its own.
            let Value::Object(record) = Source(&bytes).record(shape) else { continue };
            let written = Schema::get().write(&shape.name, &record).expect("written");
            let read = Schema::get().read(&shape.name, &written, &limits());
            prop_assert_eq!(read.as_ref(), Ok(&record), "{}", shape.name);
        }
    }

    #[test]
    fn bytes_of_any_kind_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for shape in description().records() {
            let name = &shape.name;
            if let Ok(record) = Schema::get().read(name, &bytes, &limits()) {
                let again = Schema::get().write(name, &record).expect("written");
                prop_assert_eq!(Schema::get().read(name, &again, &limits()), Ok(record));
            }
        }
    }

    #[test]
    fn a_record_that_is_cut_is_never_read_as_more_than_was_there(cut in 0_usize..60) {
        let record = json!({"target": {"topic": "news"}, "data": {"k": "v"}, "ttl_seconds": 60, "idempotency_key": "once"});
        let written = written("SendMessageRequest", &record);
        let cut = &written[..cut.min(written.len() - 1)];
        if let Ok(read) = Schema::get().read("SendMessageRequest", cut, &limits()) {
            prop_assert!(read.len() < 5);
        }
    }
}

fn written(name: &str, record: &Value) -> Vec<u8> {
    Schema::get().write(name, record.as_object().expect("an object")).expect("written")
}

/// A record with one field of each kind, numbered in order from 1.
fn kinds() -> Schema {
    let inner = RecordShape::new("Inner", "", vec![FieldShape::optional("x", Shape::Int, "")]);
    let list = |shape| Shape::List(Box::new(shape));
    let fields = [
        ("int", Shape::Int),
        ("texts", list(Shape::Text)),
        ("ints", list(Shape::Int)),
        ("map", Shape::Map(Box::new(Shape::Int))),
        ("inner", Shape::Record("Inner".into())),
        ("self", Shape::Record("Outer".into())),
        ("double", Shape::Double),
        ("json", Shape::Json),
        ("rows", list(list(Shape::Int))),
    ];
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    let shapes = fields.into_iter().map(|(name, shape)| FieldShape::optional(name, shape, ""));
    let outer = RecordShape::new("Outer", "", shapes.collect());
    let numbered =
        |names: &[&str]| (1..).zip(names).map(|(number, name)| ((*name).to_owned(), number)).collect();
    let records =
        BTreeMap::from([("Outer".to_owned(), numbered(&names)), ("Inner".to_owned(), numbered(&["x"]))]);
    Schema::of([&outer, &inner].into_iter(), &Numbers { records, ..Numbers::default() })
}

fn read(bytes: &[u8]) -> Result<Value, Problem> {
    kinds().read("Outer", bytes, &limits()).map(Value::Object)
}

fn refused(bytes: &[u8]) -> (ErrorCode, String) {
    let problem = read(bytes).expect_err("refused");
    (problem.code, problem.field.unwrap_or_default())
}

#[test]
fn numbers_are_read_packed_and_unpacked_and_what_is_there_twice_is_joined() {
    assert_eq!(read(&[0x18, 1, 0x1a, 2, 2, 3, 0x18, 4]), Ok(json!({"ints": [1, 2, 3, 4]})));
    assert_eq!(read(&[0x08, 1, 0x08, 2]), Ok(json!({"int": 2})));
    assert_eq!(read(&[0x2a, 2, 0x08, 7, 0x2a, 0]), Ok(json!({"inner": {"x": 7}})));
    assert_eq!(read(&[0x22, 3, 0x0a, 1, b'a', 0x22, 2, 0x10, 5]), Ok(json!({"map": {"": 5, "a": 0}})));
    let minus_one = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(read(&minus_one), Ok(json!({"int": -1})));
    assert_eq!(read(&[0x4a, 3, b'[', b'1', b']']), Ok(json!({"rows": [[1]]})));
}

#[test]
fn fields_that_are_not_known_are_passed_over() {
    let unknown =
        [0xf8, 0x01, 9, 0xfa, 0x01, 1, 0, 0xf9, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0x01, 0, 0, 0, 0];
    assert_eq!(read(&unknown), Ok(json!({})));
}

#[test]
fn what_breaks_the_format_is_refused_at_its_path() {
    let (request, field) = (ErrorCode::InvalidRequest, ErrorCode::InvalidField);
    for (bytes, expected) in [
        // a length beyond the end, of a text and of a record
        (&[0x12, 5, b'a'][..], (request, "texts[0]")),
        (&[0x2a, 0xff, 0xff, 0xff, 0xff, 0x0f], (request, "inner")),
        (&[0x2a, 2, 0x08, 0x80], (request, "inner.x")),
        // a number that never ends
        (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], (request, "int")),
        // groups, the number zero, a wire type that is none
        (&[0xfb, 0x01, 0xfc, 0x01], (request, "")),
        (&[0x0b, 0x0c], (request, "")),
        (&[0x00, 0x00], (request, "")),
        (&[0x0e], (request, "")),
        // a kind in the place of another
        (&[0x0a, 0], (request, "int")),
        (&[0x15, 0, 0, 0, 0], (request, "texts[0]")),
        // values that break a rule
        (&[0x12, 1, b'a', 0x12, 1, 0xff], (field, "texts[1]")),
        (&[0x39, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f], (field, "double")),
        (&[0x42, 1, b'{'], (field, "json")),
    ] {
        assert_eq!(refused(bytes), (expected.0, expected.1.to_owned()), "{bytes:?}");
    }
}

#[test]
fn what_is_named_as_cleared_is_nothing_and_cannot_be_set_as_well() {
    let number = |name: &str| description().numbers.field("ChangeDeviceRequest", name).expect("a number");
    let change = |fields: &[(&str, &str)]| {
        let mut bytes = Vec::new();
        fields.iter().for_each(|(name, value)| put_field(number(name), value.as_bytes(), &mut bytes));
        Schema::get().read("ChangeDeviceRequest", &bytes, &limits()).map(Value::Object)
    };
    let cleared = change(&[("clear", "user"), ("device", "d"), ("clear", "tags"), ("clear", "user")]);
    assert_eq!(cleared, Ok(json!({"device": "d", "user": null, "tags": []})));
    assert_eq!(change(&[("device", "d")]), Ok(json!({"device": "d"})), "what is absent stays");
    for wrong in [
        &[("clear", "locale"), ("clear", "token")][..],
        &[("clear", "locale"), ("clear", "user"), ("user", "anna")],
        &[("clear", "locale"), ("tags", "a"), ("clear", "tags")],
    ] {
        let problem = change(wrong).expect_err("refused");
        assert_eq!((problem.code, problem.field.as_deref()), (ErrorCode::InvalidField, Some("clear[1]")));
    }
}

#[test]
fn depth_bytes_and_values_are_limited() {
    let mut deep = Vec::new();
    for _ in 0..120 {
        let mut outer = Vec::new();
        put_field(6, &deep, &mut outer);
        deep = outer;
    }
    assert_eq!(read(&deep).expect_err("too deep").code, ErrorCode::InvalidRequest);
    let narrow = DocumentLimits { nodes_max: 10, ..limits() };
    let many = kinds().read("Outer", &[0x18, 1].repeat(11), &narrow).expect_err("too many");
    assert_eq!(many.code, ErrorCode::PayloadTooLarge);
    let short = DocumentLimits { document_max_bytes: 10, ..limits() };
    let large = kinds().read("Outer", &[0x18, 1].repeat(6), &short).expect_err("too large");
    assert_eq!(large.code, ErrorCode::PayloadTooLarge);
}

#[test]
fn a_choice_without_content_is_its_name_and_the_last_of_several_holds() {
    let target = |bytes: &[u8]| {
        let mut outer = Vec::new();
        let number = description().numbers.field("SendMessageRequest", "target").expect("a number");
        put_field(number, bytes, &mut outer);
        Schema::get().read("SendMessageRequest", &outer, &limits()).map(|mut record| record.remove("target"))
    };
    let number = |name| description().numbers.field("Target", name).expect("a number");
    let (mut everyone, mut topic) = (Vec::new(), Vec::new());
    put_number(number("everyone"), 1, &mut everyone);
    put_field(number("topic"), b"news", &mut topic);
    assert_eq!(target(&everyone), Ok(Some(json!("everyone"))));
    assert_eq!(target(&[&everyone[..], &topic[..]].concat()), Ok(Some(json!({"topic": "news"}))));
    let problem = target(&[]).expect_err("nothing is chosen");
    assert_eq!((problem.code, problem.field.as_deref()), (ErrorCode::InvalidField, Some("target")));
    let mut not_everyone = Vec::new();
    put_number(number("everyone"), 0, &mut not_everyone);
    let problem = target(&not_everyone).expect_err("false is no choice");
    assert_eq!(problem.field.as_deref(), Some("target.everyone"));
}
