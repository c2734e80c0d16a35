//! A writer of XML that every reader reads back unchanged.

use super::is_allowed;
use crate::WireError;
use std::ops::Range;

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// Writes a document from its start to its end.
#[derive(Debug, Default)]
pub struct Writer {
    text: String,
    /// Ranges of the text with the names of open elements.
    open: Vec<Range<usize>>,
    /// The start tag still lacks its `>`.
    in_tag: bool,
}

impl Writer {
    /// Begins with an XML declaration.
    #[must_use]
    pub fn document() -> Self {
        Self { text: DECLARATION.to_owned(), ..Self::default() }
    }

    /// Begins an element; the name may have a prefix.
    pub fn open(&mut self, name: &str) -> Result<(), WireError> {
        check_name(name)?;
        self.end_tag();
        self.text.push('<');
        let start = self.text.len();
        self.text.push_str(name);
        self.open.push(start..self.text.len());
        self.in_tag = true;
        Ok(())
    }

    /// Adds an attribute to the element just begun.
    pub fn attribute(&mut self, name: &str, value: &str) -> Result<(), WireError> {
        check_name(name)?;
        if !self.in_tag {
            return Err(WireError::Unrepresentable("an attribute after the start of an element"));
        }
        self.text.push(' ');
        self.text.push_str(name);
        self.text.push_str("=\"");
        self.escaped(value, true)?;
        self.text.push('"');
        Ok(())
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> Result<(), WireError> {
        self.end_tag();
        self.escaped(text, false)
    }

    /// Adds complete markup of our own, unescaped.
    pub(crate) fn verbatim(&mut self, markup: &'static str) {
        self.end_tag();
        self.text.push_str(markup);
    }

    /// Ends the element begun last.
    pub fn close(&mut self) {
        let Some(name) = self.open.pop() else { return };
        if self.in_tag {
            self.text.push_str("/>");
            self.in_tag = false;
        } else {
            self.text.push_str("</");
            self.text.extend_from_within(name);
            self.text.push('>');
        }
    }

    /// Writes an element that holds text only.
    pub fn leaf(&mut self, name: &str, text: &str) -> Result<(), WireError> {
        self.open(name)?;
        self.text(text)?;
        self.close();
        Ok(())
    }

    /// Ends the open elements and returns the bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        while !self.open.is_empty() {
            self.close();
        }
        self.text.into_bytes()
    }

    fn end_tag(&mut self) {
        if self.in_tag {
            self.text.push('>');
            self.in_tag = false;
        }
    }

    /// Escapes characters that would not survive: markup, and the line ends and tabs that readers change.
    fn escaped(&mut self, text: &str, in_attribute: bool) -> Result<(), WireError> {
        let mut rest = text;
        // Most texts need no escapes, and are copied unchanged.
        while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
            let (before, after) = rest.split_at(at);
            self.text.push_str(before);
            let mut letters = after.chars();
            letters.next().map_or(Ok(()), |letter| self.escaped_letter(letter, in_attribute))?;
            rest = letters.as_str();
        }
        self.text.push_str(rest);
        Ok(())
    }

    fn escaped_letter(&mut self, letter: char, in_attribute: bool) -> Result<(), WireError> {
        match letter {
            '&' => self.text.push_str("&amp;"),
            '<' => self.text.push_str("&lt;"),
            '>' => self.text.push_str("&gt;"),
            '\r' => self.text.push_str("&#13;"),
            '"' if in_attribute => self.text.push_str("&quot;"),
            '\n' if in_attribute => self.text.push_str("&#10;"),
            '\t' if in_attribute => self.text.push_str("&#9;"),
            letter if is_allowed(letter) => self.text.push(letter),
            _ => return Err(WireError::Unrepresentable("a control character")),
        }
        Ok(())
    }
}

/// Returns true if a byte is an ASCII character that never needs an escape.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'&' | b'<' | b'>' | b'"')
}

/// Fails unless a name consists of letters, digits and `_ - . :`. Other characters that XML allows are not needed.
fn check_name(name: &str) -> Result<(), WireError> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    let rest = letters.all(|letter| letter.is_alphanumeric() || ['_', '-', '.', ':'].contains(&letter));
    if first && rest { Ok(()) } else { Err(WireError::Unrepresentable("a name with such characters")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_come_back_is_escaped_wherever_it_stands() {
        let mut writer = Writer::default();
        writer.open("a").expect("a name");
        writer.attribute("b", "\"<>&\t\r\n").expect("allowed");
        writer.open("läng-er").expect("a name");
        writer.text("& plain ü<\u{7f}>\n\t\"\r…&").expect("allowed");
        writer.close();
        let text = String::from_utf8(writer.finish()).expect("text");
        let inner = "<läng-er>&amp; plain ü&lt;\u{7f}&gt;\n\t\"&#13;…&amp;</läng-er>";
        assert_eq!(text, format!("<a b=\"&quot;&lt;&gt;&amp;&#9;&#13;&#10;\">{inner}</a>"));
    }

    #[test]
    fn a_control_character_is_refused_wherever_it_stands() {
        for text in ["\u{1}", "plain\u{8}", "ü\u{b}ü", "\u{fffe}", "plain & \u{ffff}"] {
            assert!(Writer::default().text(text).is_err(), "{text:?}");
        }
    }
}
