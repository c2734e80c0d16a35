//! XML without document types, read in three ways over one tokenizer: [`pull`], [`sax`] and [`dom`].
//!
//! Tokens come from quick-xml. Added here are limits, a single encoding (UTF-8; ASCII and Latin-1 are converted), and the refusal of
//! document types, of entities beyond the five of XML, and of characters that XML forbids.

mod decode;
pub mod dom;
pub mod pull;
pub mod sax;
mod writer;

pub use decode::decode;
pub use writer::Writer;

use std::borrow::Cow;

/// The start of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag<'a> {
    /// The namespace, if there is one.
    pub namespace: Option<String>,
    /// The name without its prefix.
    pub name: Cow<'a, str>,
    /// Its attributes, without declarations of namespaces.
    pub attributes: Vec<Attribute>,
}

/// An attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The namespace, if it has a prefix.
    pub namespace: Option<String>,
    /// The name without its prefix.
    pub name: String,
    /// The value.
    pub value: String,
}

impl Tag<'_> {
    /// Returns the value of an attribute without a namespace.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        find(&self.attributes, None, name)
    }

    /// Returns the value of an attribute in a namespace.
    #[must_use]
    pub fn attribute_in(&self, namespace: &str, name: &str) -> Option<&str> {
        find(&self.attributes, Some(namespace), name)
    }

    /// Returns true if it is this element of this namespace.
    #[must_use]
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace.as_deref() == Some(namespace) && self.name == name
    }
}

fn find<'a>(attributes: &'a [Attribute], namespace: Option<&str>, name: &str) -> Option<&'a str> {
    let fits = |one: &&Attribute| one.name == name && one.namespace.as_deref() == namespace;
    attributes.iter().find(fits).map(|one| one.value.as_str())
}

/// Returns a text as XML 1.0 can carry it: forbidden characters become U+FFFD.
#[must_use]
pub fn allowed(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_allowed) {
        return Cow::Borrowed(text);
    }
    let letter = |letter| if is_allowed(letter) { letter } else { char::REPLACEMENT_CHARACTER };
    Cow::Owned(text.chars().map(letter).collect())
}

/// Returns true if XML 1.0 allows a character.
#[must_use]
pub const fn is_allowed(letter: char) -> bool {
    !matches!(letter, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}
