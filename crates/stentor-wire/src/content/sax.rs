//! Content from the push reader of XML: a state machine decides which elements may follow.

use super::pull::{decimal, parsed};
use super::{Content, Item, POINT_FIELD_NAMES, Point, names};
use crate::xml::Tag;
use crate::xml::pull::only_space;
use crate::xml::sax::{Handler, parse};
use crate::{DocumentLimits, WireError};

/// Names of the parts of a small object.
const ITEM_FIELD_NAMES: [&str; 3] = ["id", "name", "price"];

/// Reads a document.
pub fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<Content, WireError> {
    let mut assembly = Assembly::default();
    parse(bytes, limits, &mut assembly)?;
    assembly.content.ok_or_else(|| WireError::missing("content"))
}

/// The content read so far.
#[derive(Default)]
struct Assembly {
    content: Option<Content>,
    /// Open elements: the root, an entry, a field.
    depth: usize,
    /// Text of the innermost element.
    text: String,
    /// Fields of the current entry.
    fields: Vec<String>,
}

impl Handler for Assembly {
    fn start(&mut self, tag: &Tag) -> Result<(), WireError> {
        only_space(&self.text)?;
        self.text.clear();
        match &self.content {
            None => self.content = Some(empty(&tag.name)?),
            Some(content) => {
                let wanted = content.wanted(self.depth, self.fields.len());
                let wanted = wanted.ok_or_else(|| WireError::unexpected(&tag.name, "text or the end"))?;
                if tag.name != wanted {
                    return Err(WireError::unexpected(&tag.name, wanted));
                }
            }
        }
        self.depth += 1;
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), WireError> {
        self.text.push_str(text);
        Ok(())
    }

    fn end(&mut self) -> Result<(), WireError> {
        self.depth -= 1;
        let text = std::mem::take(&mut self.text);
        let Some(content) = &mut self.content else { return Ok(()) };
        match self.depth {
            2 => self.fields.push(text),
            1 => content.entry(text, std::mem::take(&mut self.fields))?,
            _ => match content {
                Content::Payload(payload) => *payload = text,
                _ => only_space(&text)?,
            },
        }
        Ok(())
    }
}

fn empty(name: &str) -> Result<Content, WireError> {
    Ok(match name {
        names::PAYLOAD => Content::Payload(String::new()),
        name if name == names::NUMBERS.0 => Content::Numbers(Vec::new()),
        name if name == names::TEXTS.0 => Content::Texts(Vec::new()),
        name if name == names::OBJECTS.0 => Content::Objects(Vec::new()),
        name if name == names::POINTS.0 => Content::Points(Vec::new()),
        other => return Err(WireError::unexpected(other, "content")),
    })
}

impl Content {
    /// Returns the name of the element that may start at a depth, after a number of fields of the current entry.
    fn wanted(&self, depth: usize, fields: usize) -> Option<&'static str> {
        match (self, depth) {
            (Self::Numbers(_), 1) => Some(names::NUMBERS.1),
            (Self::Texts(_), 1) => Some(names::TEXTS.1),
            (Self::Objects(_), 1) => Some(names::OBJECTS.1),
            (Self::Points(_), 1) => Some(names::POINTS.1),
            (Self::Objects(_), 2) => ITEM_FIELD_NAMES.get(fields).copied(),
            (Self::Points(_), 2) => POINT_FIELD_NAMES.get(fields).copied(),
            _ => None,
        }
    }

    /// Adds an entry with its text or its fields.
    fn entry(&mut self, text: String, fields: Vec<String>) -> Result<(), WireError> {
        match self {
            Self::Payload(_) => {}
            Self::Numbers(numbers) => numbers.push(parsed(&text)?),
            Self::Texts(texts) => texts.push(text),
            Self::Objects(items) => {
                only_space(&text)?;
                let fields: Result<[String; 3], _> = fields.try_into();
                let [id, name, price] = fields.map_err(|_| WireError::missing("a field of an object"))?;
                items.push(Item { id: parsed(&id)?, name, price: decimal(&price)? });
            }
            Self::Points(points) => {
                only_space(&text)?;
                let fields = fields.try_into().map_err(|_| WireError::missing("a field of a point"))?;
                points.push(Point::of(fields));
            }
        }
        Ok(())
    }
}
