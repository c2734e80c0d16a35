//! The records of the contract as an XML schema.

use std::collections::{BTreeMap, BTreeSet};

use super::{RETURN, fault};
use crate::contract::description::{Description, OperationShape, description};
use crate::contract::shape::{FieldShape, RecordShape, Shape};
use crate::face::markup::{Markup, markup};
use crate::face::record::xml::NAMESPACE;

/// Namespace of XML schemas.
pub(in crate::face) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// Verb of operations that change some fields; null clears a field there.
const CHANGE: &str = "change";

/// Writes the schema: an element for each request and reply, and a type for each nested record.
pub(in crate::face) fn schema() -> Markup {
    let operations = description().operations.iter().flat_map(elements);
    let refusal = fault::shape();
    above_types(operations.chain([wrapper(&refusal.name, &refusal, false)]))
}

/// Writes the schema of XML without envelopes: an element for each of these requests, and one for each reply record.
pub(in crate::face) fn schema_of_bodies<'a>(
    requests: impl IntoIterator<Item = &'a OperationShape>,
) -> Markup {
    let names: BTreeSet<_> = replied(description()).map(|record| &record.name).collect();
    let reply = |name: &String| {
        markup("xsd:element").set("name", name).set("type", type_of(&Shape::Record(name.clone())))
    };
    above_types(requests.into_iter().map(request).chain(names.into_iter().map(reply)))
}

/// Writes elements, followed by all types that they use.
fn above_types(elements: impl Iterator<Item = Markup>) -> Markup {
    let description = description();
    let records = description.shapes.0.values().chain(replied(description));
    let types: BTreeMap<_, _> = records.map(|record| (&record.name, record)).collect();
    markup("xsd:schema")
        .set("targetNamespace", NAMESPACE)
        .set("elementFormDefault", "qualified")
        .with_all(elements)
        .with_all(types.into_values().map(record_type))
        .with_all(maps(description).into_iter().map(|(name, inner)| map_type(&name, inner)))
}

/// Lists the reply records. A record may occur several times.
fn replied(description: &Description) -> impl Iterator<Item = &RecordShape> {
    description.operations.iter().map(|one| &one.reply).filter(|record| !record.fields.is_empty())
}

/// Returns the elements of request and reply. Their types are anonymous, as required by tools that unwrap them.
fn elements(one: &OperationShape) -> [Markup; 2] {
    [request(one), reply(one)]
}

fn request(one: &OperationShape) -> Markup {
    let is_nillable = one.facts.noun_and_verb().1 == CHANGE;
    wrapper(one.facts.type_name, &one.request, is_nillable)
}

fn reply(one: &OperationShape) -> Markup {
    let is_empty = one.reply.fields.is_empty();
    let shape = Shape::Record(one.reply.name.clone());
    let inside = (!is_empty).then(|| field(&FieldShape::required(RETURN, shape, ""), false));
    let inner = markup("xsd:complexType").with(markup("xsd:sequence").with_all(inside));
    markup("xsd:element").set("name", super::reply_name(one)).with(inner)
}

fn wrapper(name: &str, record: &RecordShape, is_nillable: bool) -> Markup {
    let about = if record.about.is_empty() { None } else { Some(documentation(&record.about)) };
    let inner = markup("xsd:complexType").with(content(record, is_nillable));
    markup("xsd:element").set("name", name).with_all(about).with(inner)
}

fn record_type(record: &RecordShape) -> Markup {
    let about = if record.about.is_empty() { None } else { Some(documentation(&record.about)) };
    markup("xsd:complexType").set("name", &record.name).with_all(about).with(content(record, false))
}

fn content(record: &RecordShape, is_nillable: bool) -> Markup {
    let fields = record.fields.iter();
    if record.is_choice {
        return markup("xsd:choice")
            .with_all(fields.map(|one| field(&FieldShape { is_required: true, ..one.clone() }, false)));
    }
    markup("xsd:sequence").with_all(fields.map(|one| field(one, is_nillable && !one.is_required)))
}

fn field(field: &FieldShape, is_nillable: bool) -> Markup {
    let is_list = matches!(field.shape, Shape::List(_));
    let mut element = markup("xsd:element").set("name", &field.name).set("type", type_of(&field.shape));
    if is_list || !field.is_required {
        element = element.set("minOccurs", "0");
    }
    if is_list {
        element = element.set("maxOccurs", "unbounded");
    }
    if is_nillable {
        element = element.set("nillable", "true");
    }
    if field.about.is_empty() { element } else { element.with(documentation(&field.about)) }
}

fn documentation(about: &str) -> Markup {
    markup("xsd:annotation").with(markup("xsd:documentation").say(about))
}

/// Returns the name of a type. Any JSON is carried as text.
fn type_of(shape: &Shape) -> String {
    match shape {
        Shape::Text | Shape::Json => "xsd:string".into(),
        Shape::Int => "xsd:long".into(),
        Shape::Double => "xsd:double".into(),
        Shape::Bool => "xsd:boolean".into(),
        Shape::List(inner) => type_of(inner),
        Shape::Map(inner) => format!("tns:{}", map_name(inner)),
        Shape::Record(name) => format!("tns:{name}"),
    }
}

fn map_name(inner: &Shape) -> String {
    let of = type_of(inner);
    let local = of.rsplit(':').next().unwrap_or_default();
    let mut letters = local.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    format!("MapOf{}{}", first.unwrap_or_default(), letters.as_str())
}

/// Returns the map types of all fields.
fn maps(description: &Description) -> BTreeMap<String, &Shape> {
    let mut found = BTreeMap::new();
    let fields = description.records().flat_map(|record| &record.fields);
    fields.for_each(|field| find_maps(&field.shape, &mut found));
    found
}

fn find_maps<'a>(shape: &'a Shape, found: &mut BTreeMap<String, &'a Shape>) {
    match shape {
        Shape::List(inner) => find_maps(inner, found),
        Shape::Map(inner) => {
            found.insert(map_name(inner), inner);
            find_maps(inner, found);
        }
        _ => {}
    }
}

fn map_type(name: &str, inner: &Shape) -> Markup {
    let one = |name: &str, kind: String| markup("xsd:element").set("name", name).set("type", kind);
    let pair =
        markup("xsd:sequence").with(one("key", "xsd:string".into())).with(one("value", type_of(inner)));
    let entry = markup("xsd:element")
        .set("name", "entry")
        .set("minOccurs", "0")
        .set("maxOccurs", "unbounded")
        .with(markup("xsd:complexType").with(pair));
    markup("xsd:complexType").set("name", name).with(markup("xsd:sequence").with(entry))
}
