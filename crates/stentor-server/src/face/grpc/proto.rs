//! The contract as a `.proto` file.

use super::methods::{PACKAGE, Service, services};
use crate::contract::description::description;
use crate::contract::shape::{FieldShape, RecordShape, Shape};
use crate::contract::streams::StreamFlow;

/// Returns the file from which clients are generated.
#[must_use]
pub fn proto() -> String {
    let mut text = format!(
        "// The gRPC face of Stentor: a service a noun, a method an operation. Field numbers never change.\n\
         syntax = \"proto3\";\n\npackage {PACKAGE};\n"
    );
    services().iter().for_each(|one| service(one, &mut text));
    description().records().for_each(|one| message(one, &mut text));
    text
}

fn service(service: &Service, text: &mut String) {
    text.push_str(&format!("\nservice {} {{\n", service.name));
    for one in &service.methods {
        comment(&one.about, "  ", text);
        let pieces = |flow| if one.flow == Some(flow) { "stream " } else { "" };
        let (asks, replies) = (pieces(StreamFlow::Request), pieces(StreamFlow::Reply));
        let (method, request, replied) = (one.name, &one.request.name, &one.reply.name);
        text.push_str(&format!("  rpc {method}({asks}{request}) returns ({replies}{replied});\n"));
    }
    text.push_str("}\n");
}

fn message(record: &RecordShape, text: &mut String) {
    text.push('\n');
    comment(&record.about, "", text);
    text.push_str(&format!("message {} {{\n", record.name));
    let (chosen, beside): (Vec<_>, Vec<_>) = record.fields.iter().partition(|one| is_in_choice(record, one));
    if record.is_choice {
        text.push_str("  oneof choice {\n");
        chosen.into_iter().for_each(|one| field(record, one, "    ", text));
        text.push_str("  }\n");
    }
    let clear = record.clear_field();
    beside.into_iter().chain(&clear).for_each(|one| field(record, one, "  ", text));
    text.push_str("}\n");
}

fn field(record: &RecordShape, field: &FieldShape, indent: &str, text: &mut String) {
    let Some(number) = description().numbers.field(&record.name, &field.name) else { return };
    comment(&field.about, indent, text);
    let label = label(record, field);
    text.push_str(&format!("{indent}{label}{} {} = {number};\n", kind(&field.shape), field.name));
}

fn comment(about: &str, indent: &str, text: &mut String) {
    about.lines().for_each(|line| text.push_str(&format!("{indent}// {}\n", line.trim())));
}

fn label(record: &RecordShape, field: &FieldShape) -> &'static str {
    if has_presence(record, field) { "optional " } else { "" }
}

/// Returns true if the presence of a field is explicit. Records always have presence, and lists and maps never.
pub(super) fn has_presence(record: &RecordShape, field: &FieldShape) -> bool {
    let is_scalar =
        matches!(field.shape, Shape::Text | Shape::Int | Shape::Double | Shape::Bool | Shape::Json);
    is_scalar && !field.is_required && !record.is_choice
}

/// Returns true if a field is part of its record's `oneof`. Lists and maps cannot be, and are ordinary fields.
pub(super) fn is_in_choice(record: &RecordShape, field: &FieldShape) -> bool {
    record.is_choice && !matches!(field.shape, Shape::List(_) | Shape::Map(_))
}

fn kind(shape: &Shape) -> String {
    match shape {
        Shape::List(inner) => format!("repeated {}", single(inner)),
        Shape::Map(inner) => format!("map<string, {}>", single(inner)),
        one => single(one).to_owned(),
    }
}

/// Returns the type of a single value. A list or a map inside another is JSON.
fn single(shape: &Shape) -> &str {
    match shape {
        Shape::Text | Shape::Json | Shape::List(_) | Shape::Map(_) => "string",
        Shape::Int => "int64",
        Shape::Double => "double",
        Shape::Bool => "bool",
        Shape::Record(name) => name,
    }
}
