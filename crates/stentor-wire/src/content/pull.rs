//! Content from the pull reader of XML: each function reads one element and knows the next.

use super::{Content, Item, POINT_FIELD_NAMES, Point, names};
use crate::xml::decode;
use crate::xml::pull::Pull;
use crate::{DocumentLimits, WireError};
use std::str::FromStr;

/// Reads a document.
pub fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<Content, WireError> {
    let text = decode(bytes, limits)?;
    let mut pull = Pull::new(&text, limits);
    let root = pull.child()?.ok_or_else(|| WireError::missing("content"))?;
    let content = element(&root.name, &mut pull)?;
    pull.finish()?;
    Ok(content)
}

/// Reads the rest of a content element after its start.
pub(crate) fn element(name: &str, pull: &mut Pull) -> Result<Content, WireError> {
    Ok(match name {
        names::PAYLOAD => Content::Payload(pull.text()?.into_owned()),
        name if name == names::NUMBERS.0 => Content::Numbers(entries(pull, names::NUMBERS.1, number)?),
        name if name == names::TEXTS.0 => {
            Content::Texts(entries(pull, names::TEXTS.1, |pull| Ok(pull.text()?.into_owned()))?)
        }
        name if name == names::OBJECTS.0 => Content::Objects(entries(pull, names::OBJECTS.1, item)?),
        name if name == names::POINTS.0 => Content::Points(entries(pull, names::POINTS.1, point)?),
        other => return Err(WireError::unexpected(other, "content")),
    })
}

fn entries<'a, T>(
    pull: &mut Pull<'a>,
    name: &str,
    read: impl Fn(&mut Pull<'a>) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let mut entries = Vec::new();
    while let Some(tag) = pull.child()? {
        if tag.name != name {
            return Err(WireError::unexpected(&tag.name, name));
        }
        entries.push(read(pull)?);
    }
    Ok(entries)
}

fn item(pull: &mut Pull) -> Result<Item, WireError> {
    pull.named_child("id")?;
    let id = number(pull)?;
    pull.named_child("name")?;
    let name = pull.text()?.into_owned();
    pull.named_child("price")?;
    let price = decimal(&pull.text()?)?;
    pull.close()?;
    Ok(Item { id, name, price })
}

fn point(pull: &mut Pull) -> Result<Point, WireError> {
    let mut fields: [String; POINT_FIELD_NAMES.len()] = std::array::from_fn(|_| String::new());
    for (field, name) in fields.iter_mut().zip(POINT_FIELD_NAMES) {
        pull.named_child(name)?;
        *field = pull.text()?.into_owned();
    }
    pull.close()?;
    Ok(Point::of(fields))
}

fn number(pull: &mut Pull) -> Result<i64, WireError> {
    parsed(&pull.text()?)
}

/// Parses a number, possibly surrounded by white space.
pub(super) fn parsed<T: FromStr>(text: &str) -> Result<T, WireError> {
    text.trim().parse().map_err(|_| WireError::number(text))
}

/// Parses a number with a fraction, which must be finite.
pub(super) fn decimal(text: &str) -> Result<f64, WireError> {
    let number: f64 = parsed(text)?;
    if number.is_finite() { Ok(number) } else { Err(WireError::number(text)) }
}
