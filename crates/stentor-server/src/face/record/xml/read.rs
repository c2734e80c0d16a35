//! Decodes records from elements.

use serde_json::{Number, Value};
use stentor_wire::xml::dom::Element;

use super::{ENTRY, INSTANCE, KEY, NAMESPACE, VALUE};
use crate::contract::shape::{FieldShape, RecordShape, Shape, Shapes};
use crate::contract::{Problem, ServiceResult};
use crate::decode::errors::nearest;
use crate::decode::free_value;
use crate::face::record::Record;

/// Maximum length of an unknown name in an error.
const NAME_SHOWN_MAX_CHARS: usize = 100;

/// Decodes a record from the content of an element. A problem has the path of its field.
pub fn read_record(element: &Element, record: &RecordShape, shapes: &Shapes) -> ServiceResult<Record> {
    let found = fields(element, record, shapes)?;
    Ok(with_empty_lists(found, record))
}

fn fields(element: &Element, record: &RecordShape, shapes: &Shapes) -> ServiceResult<Record> {
    refuse_text(element)?;
    let mut found = Record::new();
    for child in element.elements() {
        let field = known(child, record)?;
        add(&mut found, child, field, shapes)?;
    }
    Ok(found)
}

/// Adds empty lists for required list fields without elements.
fn with_empty_lists(mut found: Record, record: &RecordShape) -> Record {
    let lists = record.fields.iter().filter(|field| field.is_required && is_list(&field.shape));
    lists.for_each(|field| {
        found.entry(&field.name).or_insert_with(|| Value::Array(Vec::new()));
    });
    found
}

const fn is_list(shape: &Shape) -> bool {
    matches!(shape, Shape::List(_))
}

/// Returns the field of an element. Elements without a namespace are accepted as well.
fn known<'a>(child: &Element, record: &'a RecordShape) -> ServiceResult<&'a FieldShape> {
    let is_ours = child.namespace.as_deref().is_none_or(|namespace| namespace == NAMESPACE);
    let field = record.field(&child.name).filter(|_| is_ours);
    field.ok_or_else(|| {
        let name: String = child.name.chars().take(NAME_SHOWN_MAX_CHARS).collect();
        let problem = Problem::field(name.clone(), format!("unknown field `{name}`"));
        let names = record.fields.iter().map(|field| field.name.as_str());
        match nearest(&name, names) {
            Some(near) if !is_ours => problem.with_hint(format!("`{near}` is in the namespace {NAMESPACE}")),
            Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
            None => problem,
        }
    })
}

/// Adds the value of an element to the fields.
fn add(found: &mut Record, child: &Element, field: &FieldShape, shapes: &Shapes) -> ServiceResult<()> {
    let name = field.name.as_str();
    let Shape::List(inner) = &field.shape else {
        if found.contains_key(name) {
            return Err(Problem::field(name, "occurs twice"));
        }
        let read = nullable(child, &field.shape, shapes).map_err(|problem| inside(name, problem))?;
        found.insert(name.to_owned(), read);
        return Ok(());
    };
    let Value::Array(items) = found.entry(name).or_insert_with(|| Value::Array(Vec::new())) else {
        return Ok(());
    };
    if !is_nil(child) {
        let place = items.len();
        let read = value(child, inner, shapes);
        items.push(read.map_err(|problem| inside(&format!("{name}[{place}]"), problem))?);
    }
    Ok(())
}

/// Prepends a name to the path of a problem.
fn inside(outer: &str, problem: Problem) -> Problem {
    let field = match problem.field.as_deref().filter(|field| !field.is_empty()) {
        None => outer.to_owned(),
        Some(inner) => format!("{outer}.{inner}"),
    };
    problem.at(field)
}

fn is_nil(element: &Element) -> bool {
    matches!(element.attribute_in(INSTANCE, "nil").map(str::trim), Some("true" | "1"))
}

fn nullable(element: &Element, shape: &Shape, shapes: &Shapes) -> ServiceResult<Value> {
    if is_nil(element) { Ok(Value::Null) } else { value(element, shape, shapes) }
}

fn value(element: &Element, shape: &Shape, shapes: &Shapes) -> ServiceResult<Value> {
    match shape {
        Shape::Text => text(element).map(Value::String),
        Shape::Int => whole(text(element)?.trim()),
        Shape::Double => fraction(text(element)?.trim()),
        Shape::Bool => truth(text(element)?.trim()),
        Shape::Json => any(&text(element)?),
        Shape::List(inner) => element.elements().map(|item| value(item, inner, shapes)).collect(),
        Shape::Map(inner) => map(element, inner, shapes).map(Value::Object),
        Shape::Record(name) => {
            let record = shapes.record(name).ok_or_else(|| Problem::field("", "is not described"))?;
            if record.is_choice { choice(element, record, shapes) } else { object(element, record, shapes) }
        }
    }
}

fn object(element: &Element, record: &RecordShape, shapes: &Shapes) -> ServiceResult<Value> {
    read_record(element, record, shapes).map(Value::Object)
}

fn text(element: &Element) -> ServiceResult<String> {
    match element.elements().next() {
        None => Ok(element.text()),
        Some(_) => Err(Problem::field("", "must be text without elements inside")),
    }
}

fn whole(text: &str) -> ServiceResult<Value> {
    let number = text.parse::<i64>();
    number.map(Value::from).map_err(|_| Problem::field("", "must be a whole number of 64 bits"))
}

fn fraction(text: &str) -> ServiceResult<Value> {
    let number = text.parse().ok().and_then(Number::from_f64);
    number.map(Value::Number).ok_or_else(|| Problem::field("", "must be a number"))
}

fn truth(text: &str) -> ServiceResult<Value> {
    match text {
        "true" | "1" => Ok(Value::Bool(true)),
        "false" | "0" => Ok(Value::Bool(false)),
        _ => Err(Problem::field("", "must be true or false")),
    }
}

/// Parses free JSON from its text. An element without content is null.
fn any(text: &str) -> ServiceResult<Value> {
    if text.trim().is_empty() { Ok(Value::Null) } else { free_value(text.as_bytes()) }
}

fn map(element: &Element, inner: &Shape, shapes: &Shapes) -> ServiceResult<Record> {
    refuse_text(element)?;
    let mut found = Record::new();
    for (place, entry) in element.elements().enumerate() {
        let (key, read) = pair(entry, inner, shapes).map_err(|problem| at_place(place, problem))?;
        // A null entry is left out.
        let Some(read) = read else { continue };
        if found.insert(key, read).is_some() {
            return Err(at_place(place, Problem::field(KEY, "occurs twice")));
        }
    }
    Ok(found)
}

fn at_place(place: usize, problem: Problem) -> Problem {
    inside(&format!("{ENTRY}[{place}]"), problem)
}

fn pair(entry: &Element, inner: &Shape, shapes: &Shapes) -> ServiceResult<(String, Option<Value>)> {
    refuse_text(entry)?;
    let parts: Vec<&Element> = entry.elements().collect();
    let named = |name: &str| parts.iter().find(|part| part.name == name).copied();
    let (Some(key), Some(content), 2, ENTRY) = (named(KEY), named(VALUE), parts.len(), entry.name.as_str())
    else {
        return Err(Problem::field("", "must be an `entry` with one `key` and one `value`"));
    };
    let key = text(key).map_err(|problem| inside(KEY, problem))?;
    if is_nil(content) {
        return Ok((key, None));
    }
    let content = value(content, inner, shapes).map_err(|problem| inside(VALUE, problem))?;
    Ok((key, Some(content)))
}

fn choice(element: &Element, record: &RecordShape, shapes: &Shapes) -> ServiceResult<Value> {
    let found = fields(element, record, shapes)?;
    let mut one = found.iter();
    let (Some((name, content)), None) = (one.next(), one.next()) else {
        let names: Vec<_> = record.fields.iter().map(|field| field.name.as_str()).collect();
        return Err(Problem::field("", format!("must have exactly one of {}", names.join(", "))));
    };
    match content {
        Value::Bool(true) => Ok(Value::String(name.clone())),
        Value::Bool(false) => Err(Problem::field(name.clone(), "must be true where it is chosen")),
        _ => Ok(Value::Object(found)),
    }
}

fn refuse_text(element: &Element) -> ServiceResult<()> {
    if element.text().trim().is_empty() {
        return Ok(());
    }
    Err(Problem::field("", "has text where elements were expected"))
}
