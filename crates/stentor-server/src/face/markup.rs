//! XML descriptions, indented for readers and for comparisons between versions.

use std::fmt::Write as _;

/// An element of a description, with prefixed names as in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Markup {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    inside: Vec<Self>,
}

/// Creates an element.
pub(super) fn markup(name: &str) -> Markup {
    Markup { name: name.to_owned(), attributes: Vec::new(), text: String::new(), inside: Vec::new() }
}

impl Markup {
    /// Adds an attribute.
    pub(super) fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.attributes.push((name.to_owned(), value.into()));
        self
    }

    /// Adds text. An element with text has no child elements.
    pub(super) fn say(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Adds an element.
    pub(super) fn with(mut self, inner: Self) -> Self {
        self.inside.push(inner);
        self
    }

    /// Adds elements.
    pub(super) fn with_all(mut self, inner: impl IntoIterator<Item = Self>) -> Self {
        self.inside.extend(inner);
        self
    }

    /// Writes the element as a document.
    pub(super) fn document(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        self.write(&mut text, 0);
        text
    }

    fn write(&self, text: &mut String, depth: usize) {
        let (margin, name) = ("  ".repeat(depth), &self.name);
        text.push_str(&format!("{margin}<{name}"));
        for (name, value) in &self.attributes {
            // Writing to text cannot fail.
            let _ = write!(text, " {name}=\"{}\"", escaped(value));
        }
        if self.text.is_empty() && self.inside.is_empty() {
            text.push_str("/>\n");
        } else if self.inside.is_empty() {
            text.push_str(&format!(">{}</{name}>\n", escaped(&self.text)));
        } else {
            text.push_str(">\n");
            self.inside.iter().for_each(|inner| inner.write(text, depth + 1));
            text.push_str(&format!("{margin}</{name}>\n"));
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
