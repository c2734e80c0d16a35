//! A pull reader: the caller requests the next token.

use super::{Attribute, Tag, is_allowed};
use crate::limits::Budget;
use crate::{DocumentLimits, WireError};
use quick_xml::NsReader;
use quick_xml::XmlVersion;
use quick_xml::escape::{resolve_xml_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::ResolveResult;
use std::borrow::Cow;

/// Longest namespace. It is copied for each element in it, so that a long one would be expensive.
const NAMESPACE_MAX_BYTES: usize = 500;
/// Longest escape of one byte of a namespace: `&quot;`.
const ESCAPED_MAX_BYTES: usize = 6;
/// The namespace of declarations; it must contain nothing else (Namespaces in XML 1.0, section 3).
const DECLARATIONS: &str = "http://www.w3.org/2000/xmlns/";

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'a> {
    /// An element starts.
    Start(Tag<'a>),
    /// A piece of text; adjacent pieces belong together.
    Text(Cow<'a, str>),
    /// The current element ends.
    End,
    /// The document ends.
    Eof,
}

/// Reads tokens from a decoded document.
pub struct Pull<'a> {
    reader: NsReader<&'a [u8]>,
    limits: DocumentLimits,
    budget: Budget,
    has_root: bool,
}

impl<'a> Pull<'a> {
    /// Starts at the beginning.
    #[must_use]
    pub fn new(text: &'a str, limits: &DocumentLimits) -> Self {
        let mut reader = NsReader::from_str(text);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_comments = false;
        Self { reader, limits: *limits, budget: limits.budget(), has_root: false }
    }

    /// Reads the next token; skips comments and processing instructions.
    pub fn token(&mut self) -> Result<Token<'a>, WireError> {
        loop {
            let event = self.reader.read_event().map_err(|error| WireError::Malformed(error.to_string()))?;
            if let Some(token) = self.translate(event)? {
                return Ok(token);
            }
        }
    }

    /// Goes to the next child of the current element and returns its tag; `None` at the end of the current element. Text other than white
    /// space is refused.
    pub fn child(&mut self) -> Result<Option<Tag<'a>>, WireError> {
        loop {
            match self.token()? {
                Token::Start(tag) => return Ok(Some(tag)),
                Token::End => return Ok(None),
                Token::Eof => return Err(WireError::missing("an element")),
                Token::Text(text) => only_space(&text)?,
            }
        }
    }

    /// Goes to the next child, which must exist and have this name.
    pub fn named_child(&mut self, name: &str) -> Result<Tag<'a>, WireError> {
        let tag = self.child()?.ok_or_else(|| WireError::missing(name))?;
        if tag.name == name { Ok(tag) } else { Err(WireError::unexpected(&tag.name, name)) }
    }

    /// Reads the text of the current element, and its end; child elements are refused.
    pub fn text(&mut self) -> Result<Cow<'a, str>, WireError> {
        let mut all = Cow::Borrowed("");
        loop {
            match self.token()? {
                Token::Text(text) if all.is_empty() => all = text,
                Token::Text(text) => all.to_mut().push_str(&text),
                Token::End => return Ok(all),
                Token::Start(tag) => return Err(WireError::unexpected(&tag.name, "text")),
                Token::Eof => return Err(WireError::missing("an end")),
            }
        }
    }

    /// Skips the rest of the current element, and its end.
    pub fn skip(&mut self) -> Result<(), WireError> {
        let outside = self.budget.depth().saturating_sub(1);
        while self.budget.depth() > outside {
            self.token()?;
        }
        Ok(())
    }

    /// Reads the end of the current element; further children are refused.
    pub fn close(&mut self) -> Result<(), WireError> {
        match self.child()? {
            None => Ok(()),
            Some(tag) => Err(WireError::unexpected(&tag.name, "the end")),
        }
    }

    /// Reads to the end of the document; only white space is allowed.
    pub fn finish(&mut self) -> Result<(), WireError> {
        loop {
            match self.token()? {
                Token::Eof => return Ok(()),
                Token::Text(text) => only_space(&text)?,
                Token::Start(tag) => return Err(WireError::unexpected(&tag.name, "the end")),
                Token::End => return Err(WireError::Malformed("an end without a start".into())),
            }
        }
    }

    fn translate(&mut self, event: Event<'a>) -> Result<Option<Token<'a>>, WireError> {
        Ok(Some(match event {
            Event::Start(start) | Event::Empty(start) => self.start(&start)?,
            Event::End(_) => {
                self.budget.leave();
                Token::End
            }
            Event::Text(text) => self.piece(text.xml10_content())?,
            Event::CData(text) if self.budget.depth() > 0 => Token::Text(text.xml10_content()),
            Event::GeneralRef(reference) if self.budget.depth() > 0 => Token::Text(resolve(&reference)?),
            Event::CData(_) | Event::GeneralRef(_) => {
                return Err(WireError::Malformed("text outside the root".into()));
            }
            Event::DocType(_) => return Err(WireError::Forbidden("document types")),
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) => return Ok(None),
            Event::Eof if !self.has_root || self.budget.depth() > 0 => {
                return Err(WireError::Malformed("the document ends too early".into()));
            }
            Event::Eof => Token::Eof,
        }))
    }

    fn piece(&self, text: Cow<'a, str>) -> Result<Token<'a>, WireError> {
        if self.budget.depth() == 0 {
            only_space(&text)?;
        }
        Ok(Token::Text(text))
    }

    fn start(&mut self, start: &BytesStart<'a>) -> Result<Token<'a>, WireError> {
        if self.budget.depth() == 0 && self.has_root {
            return Err(WireError::Malformed("a second root".into()));
        }
        self.has_root = true;
        self.budget.enter()?;
        let name = start.name();
        let (namespace, local) = self.reader.resolver().resolve_element(name);
        let namespace = bound(namespace)?;
        let name = Cow::Owned(without_colon(local.as_ref())?);
        Ok(Token::Start(Tag { namespace, name, attributes: self.attributes(start)? }))
    }

    fn attributes(&self, start: &BytesStart<'a>) -> Result<Vec<Attribute>, WireError> {
        let mut attributes: Vec<Attribute> = Vec::new();
        // Duplicates are detected below, within the limited count: the reader's own check compares all with all.
        for (count, attribute) in start.attributes().with_checks(false).enumerate() {
            let attribute = attribute.map_err(|error| WireError::Malformed(error.to_string()))?;
            if count >= self.limits.attributes_max {
                return Err(WireError::TooMany { what: "attributes", max: self.limits.attributes_max });
            }
            if attribute.value.contains('<') {
                return Err(WireError::Malformed("a < in an attribute".into()));
            }
            if attribute.key.as_namespace_binding().is_some() {
                continue;
            }
            let (namespace, local) = self.reader.resolver().resolve_attribute(attribute.key);
            let (namespace, name) = (bound(namespace)?, without_colon(local.as_ref())?);
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| WireError::Malformed(error.to_string()))?.into_owned();
            only_allowed(&value)?;
            if attributes.iter().any(|other| other.name == name && other.namespace == namespace) {
                return Err(WireError::Malformed(format!("the attribute {name:.40} occurs twice")));
            }
            attributes.push(Attribute { namespace, name, value });
        }
        Ok(attributes)
    }
}

fn bound(resolved: ResolveResult) -> Result<Option<String>, WireError> {
    match resolved {
        ResolveResult::Unbound => Ok(None),
        ResolveResult::Bound(namespace) if namespace.as_ref() == DECLARATIONS => {
            Err(WireError::Malformed("a name with the prefix of declarations".into()))
        }
        ResolveResult::Bound(namespace) => unescaped(namespace.as_ref()).map(Some),
        ResolveResult::Unknown(prefix) => {
            Err(WireError::Malformed(format!("the prefix {prefix:.40} is unknown")))
        }
    }
}

/// Returns the local name, which must not contain another colon (Namespaces in XML 1.0, section 4).
fn without_colon(local: &str) -> Result<String, WireError> {
    if local.contains(':') {
        Err(WireError::Malformed(format!("the name {local:.40} has more than one colon")))
    } else {
        Ok(local.to_owned())
    }
}

/// Unescapes the value of a declaration, which the tokenizer leaves raw.
fn unescaped(namespace: &str) -> Result<String, WireError> {
    // The escaped form may be longer: a writer may escape any character, and ours makes six bytes of some.
    within(namespace, NAMESPACE_MAX_BYTES * ESCAPED_MAX_BYTES)?;
    let spaced = namespace.replace(['\t', '\n', '\r'], " ");
    let text = unescape(&spaced).map_err(|error| WireError::Malformed(error.to_string()))?;
    within(&text, NAMESPACE_MAX_BYTES)?;
    only_allowed(&text)?;
    Ok(text.into_owned())
}

fn within(namespace: &str, max: usize) -> Result<(), WireError> {
    let is_long = namespace.len() > max;
    if is_long { Err(WireError::TooMany { what: "bytes in a namespace", max }) } else { Ok(()) }
}

fn only_allowed(text: &str) -> Result<(), WireError> {
    if text.chars().all(is_allowed) {
        Ok(())
    } else {
        Err(WireError::Malformed("a reference to a character that is not allowed".into()))
    }
}

fn resolve<'a>(reference: &BytesRef) -> Result<Cow<'a, str>, WireError> {
    let letter = reference.resolve_char_ref().map_err(|error| WireError::Malformed(error.to_string()))?;
    match letter {
        Some(letter) if is_allowed(letter) => Ok(Cow::Owned(letter.into())),
        Some(_) => Err(WireError::Malformed("a reference to a character that is not allowed".into())),
        None => resolve_xml_entity(reference).map(Cow::Borrowed).ok_or(WireError::Forbidden("entities")),
    }
}

/// Refuses text that is more than white space.
pub(crate) fn only_space(text: &str) -> Result<(), WireError> {
    if text.bytes().all(|byte| byte.is_ascii_whitespace()) {
        Ok(())
    } else {
        Err(WireError::Unexpected("text where elements were expected".into()))
    }
}
