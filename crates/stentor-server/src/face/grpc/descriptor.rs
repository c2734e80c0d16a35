//! The description as a `FileDescriptorProto`, which reflection serves so that clients need no compiler.

use stentor_wire::protobuf::fields::{put_field, put_number};

use super::methods::{FILE, PACKAGE, Service, services};
use super::proto::{has_presence, is_in_choice};
use crate::contract::description::description;
use crate::contract::shape::{RecordShape, Shape};
use crate::contract::streams::StreamFlow;

/// Type numbers of fields (descriptor.proto).
const DOUBLE: u64 = 1;
const INT64: u64 = 3;
const BOOL: u64 = 8;
const STRING: u64 = 9;
const MESSAGE: u64 = 11;
/// Label numbers of fields.
const OPTIONAL: u64 = 1;
const REPEATED: u64 = 3;

/// Returns the description of the whole file.
pub(super) fn file() -> Vec<u8> {
    let mut out = Vec::new();
    put_field(1, FILE.as_bytes(), &mut out);
    put_field(2, PACKAGE.as_bytes(), &mut out);
    description().records().for_each(|record| put_field(4, &message(record), &mut out));
    services().iter().for_each(|one| put_field(6, &service(one), &mut out));
    put_field(12, b"proto3", &mut out);
    out
}

fn service(service: &Service) -> Vec<u8> {
    let mut out = Vec::new();
    put_field(1, service.name.as_bytes(), &mut out);
    for one in &service.methods {
        let mut method = Vec::new();
        put_field(1, one.name.as_bytes(), &mut method);
        put_field(2, full(&one.request.name).as_bytes(), &mut method);
        put_field(3, full(&one.reply.name).as_bytes(), &mut method);
        match one.flow {
            Some(StreamFlow::Request) => put_number(5, 1, &mut method),
            Some(StreamFlow::Reply) => put_number(6, 1, &mut method),
            None => {}
        }
        put_field(2, &method, &mut out);
    }
    out
}

fn message(record: &RecordShape) -> Vec<u8> {
    let mut out = Vec::new();
    put_field(1, record.name.as_bytes(), &mut out);
    let mut oneofs: Vec<String> = record.is_choice.then(|| "choice".to_owned()).into_iter().collect();
    // Go's parser requires the fields of a `oneof` to be consecutive.
    let (chosen, beside): (Vec<_>, Vec<_>) = record.fields.iter().partition(|one| is_in_choice(record, one));
    let clear = record.clear_field();
    for one in chosen.into_iter().chain(beside).chain(&clear) {
        let Some(number) = description().numbers.field(&record.name, &one.name) else { continue };
        let mut written = field(&one.name, number, &one.shape, &record.name);
        if is_in_choice(record, one) {
            put_number(9, 0, &mut written);
        }
        if has_presence(record, one) {
            // Presence is a synthetic `oneof` of a single field (descriptor.proto, proto3_optional).
            put_number(9, oneofs.len() as u64, &mut written);
            put_number(17, 1, &mut written);
            oneofs.push(format!("_{}", one.name));
        }
        put_field(2, &written, &mut out);
        if let Shape::Map(inner) = &one.shape {
            put_field(3, &entry(&one.name, inner), &mut out);
        }
    }
    for name in oneofs {
        let mut oneof = Vec::new();
        put_field(1, name.as_bytes(), &mut oneof);
        put_field(8, &oneof, &mut out);
    }
    out
}

/// Describes a field of a record. A map refers to its entry type, which is described inside the record.
fn field(name: &str, number: u32, shape: &Shape, record: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_field(1, name.as_bytes(), &mut out);
    put_number(3, u64::from(number), &mut out);
    let (label, (kind, refers)) = match shape {
        Shape::List(inner) => (REPEATED, single(inner)),
        Shape::Map(_) => (REPEATED, (MESSAGE, Some(format!("{}.{}", full(record), entry_name(name))))),
        one => (OPTIONAL, single(one)),
    };
    put_number(4, label, &mut out);
    put_number(5, kind, &mut out);
    if let Some(refers) = refers {
        put_field(6, refers.as_bytes(), &mut out);
    }
    put_field(10, camel(name, false).as_bytes(), &mut out);
    out
}

/// Describes the entry type of a map: a key, a value, and the option that marks it as a map entry.
fn entry(name: &str, inner: &Shape) -> Vec<u8> {
    let inner = match inner {
        Shape::List(_) | Shape::Map(_) => &Shape::Json,
        inner => inner,
    };
    let mut out = Vec::new();
    put_field(1, entry_name(name).as_bytes(), &mut out);
    put_field(2, &field("key", 1, &Shape::Text, ""), &mut out);
    put_field(2, &field("value", 2, inner, ""), &mut out);
    let mut options = Vec::new();
    put_number(7, 1, &mut options);
    put_field(7, &options, &mut out);
    out
}

/// Returns the type number of a value, and the name of its record if it is one.
fn single(shape: &Shape) -> (u64, Option<String>) {
    match shape {
        Shape::Text | Shape::Json | Shape::List(_) | Shape::Map(_) => (STRING, None),
        Shape::Int => (INT64, None),
        Shape::Double => (DOUBLE, None),
        Shape::Bool => (BOOL, None),
        Shape::Record(name) => (MESSAGE, Some(full(name))),
    }
}

fn full(name: &str) -> String {
    format!(".{PACKAGE}.{name}")
}

fn entry_name(field: &str) -> String {
    format!("{}Entry", camel(field, true))
}

fn camel(name: &str, mut is_upper: bool) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '_' => is_upper = true,
            letter if is_upper => text.push(letter.to_ascii_uppercase()),
            letter => text.push(letter),
        }
        is_upper &= letter == '_';
    }
    text
}
