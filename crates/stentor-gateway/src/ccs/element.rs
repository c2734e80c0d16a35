//! XML elements, and their escaping.

use std::fmt::Write as _;

/// An element with its attributes, text and children. The texts between its children are concatenated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CcsElement {
    /// Its local name.
    pub(super) name: String,
    /// Its namespace.
    pub(super) namespace: String,
    /// Attributes without a namespace.
    pub(super) attributes: Vec<(String, String)>,
    /// All text directly inside it.
    pub(super) text: String,
    /// The elements inside it.
    pub(super) children: Vec<CcsElement>,
}

impl CcsElement {
    /// Returns an attribute's value; empty if it is absent.
    pub(super) fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }

    /// Returns the first child with this name and namespace.
    pub(super) fn child(&self, name: &str, namespace: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name && child.namespace == namespace)
    }
}

/// Escapes a text for use between tags or in quotes. Characters outside of XML become U+FFFD.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // Escaped, because an XML reader would normalize them to spaces in an attribute (XML 1.0, section 3.3.3).
            '\t' | '\n' | '\r' => _ = write!(out, "&#{};", letter as u32),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader::{XmppEvent, XmppLimits, XmppReader};
    use super::*;

    proptest! {
        #[test]
        fn what_is_escaped_is_read_back(text in "\\PC{0,60}") {
            let mut reader = XmppReader::new(XmppLimits::AFTER_LOGIN);
            let stream = format!("<s><m a='{0}'>{0}</m>", escaped(&text));
            let events = reader.read(stream.as_bytes()).expect("well-formed");
            let XmppEvent::Stanza(stanza) = &events[1] else { panic!("no stanza: {events:?}") };
            prop_assert_eq!(&stanza.text, &text);
            prop_assert_eq!(stanza.attribute("a"), &text);
        }
    }
}
