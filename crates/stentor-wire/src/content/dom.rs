//! Content from XML by way of a tree: the whole document is in memory before the first value is extracted.

use super::pull::{decimal, parsed};
use super::{Content, Item, POINT_FIELD_NAMES, Point, names};
use crate::xml::dom::{Element, Node, parse};
use crate::xml::pull::only_space;
use crate::{DocumentLimits, WireError};

/// Reads a document.
pub fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<Content, WireError> {
    content(&parse(bytes, limits)?)
}

/// Extracts content from its element.
pub fn content(root: &Element) -> Result<Content, WireError> {
    Ok(match root.name.as_str() {
        names::PAYLOAD => Content::Payload(leaf(root)?),
        name if name == names::NUMBERS.0 => {
            Content::Numbers(entries(root, names::NUMBERS.1, |one| parsed(&leaf(one)?))?)
        }
        name if name == names::TEXTS.0 => Content::Texts(entries(root, names::TEXTS.1, leaf)?),
        name if name == names::OBJECTS.0 => Content::Objects(entries(root, names::OBJECTS.1, item)?),
        name if name == names::POINTS.0 => Content::Points(entries(root, names::POINTS.1, point)?),
        other => return Err(WireError::unexpected(other, "content")),
    })
}

fn entries<T>(
    root: &Element,
    name: &str,
    read: impl Fn(&Element) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let entry = |one: &Element| {
        if one.name == name { read(one) } else { Err(WireError::unexpected(&one.name, name)) }
    };
    inside(root)?.into_iter().map(entry).collect()
}

fn item(object: &Element) -> Result<Item, WireError> {
    let [id, name, price] = fields(object, ["id", "name", "price"])?;
    Ok(Item { id: parsed(&id)?, name, price: decimal(&price)? })
}

fn point(point: &Element) -> Result<Point, WireError> {
    Ok(Point::of(fields(point, POINT_FIELD_NAMES)?))
}

/// Extracts the texts of elements with exactly these names in this order.
fn fields<const N: usize>(outside: &Element, names: [&str; N]) -> Result<[String; N], WireError> {
    let elements = inside(outside)?;
    if let Some(extra) = elements.get(N) {
        return Err(WireError::unexpected(&extra.name, "the end"));
    }
    let mut texts: [String; N] = std::array::from_fn(|_| String::new());
    for (place, name) in names.iter().enumerate() {
        let element = elements.get(place).ok_or_else(|| WireError::missing(name))?;
        if element.name != *name {
            return Err(WireError::unexpected(&element.name, name));
        }
        texts[place] = leaf(element)?;
    }
    Ok(texts)
}

/// Returns the child elements; text between them must be white space.
fn inside(outside: &Element) -> Result<Vec<&Element>, WireError> {
    only_space(&outside.text())?;
    Ok(outside.elements().collect())
}

fn leaf(element: &Element) -> Result<String, WireError> {
    match &element.children[..] {
        [] => Ok(String::new()),
        [Node::Text(text)] => Ok(text.clone()),
        _ => {
            Err(WireError::Unexpected(format!("elements in <{:.40}> where text was expected", element.name)))
        }
    }
}
