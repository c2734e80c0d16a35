//! Writing XML that every reader gets back unchanged.

use super::is_allowed;
use crate::WireError;

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// Writes a document from its start to its end.
#[derive(Debug, Default)]
pub struct Writer {
    text: String,
    open: Vec<String>,
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
        self.text.push_str(name);
        self.open.push(name.to_owned());
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

    /// Adds markup of ours that is complete in itself.
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
            self.text.push_str(&name);
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

    /// Ends what is open and gives the bytes.
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

    /// Escapes what would not come back: markup, and the line ends and tabs that readers change.
    fn escaped(&mut self, text: &str, in_attribute: bool) -> Result<(), WireError> {
        for letter in text.chars() {
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
        }
        Ok(())
    }
}

/// Names of ours are letters, digits and `_ - . :`; others that XML would allow are not needed.
fn check_name(name: &str) -> Result<(), WireError> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    let rest = letters.all(|letter| letter.is_alphanumeric() || ['_', '-', '.', ':'].contains(&letter));
    if first && rest { Ok(()) } else { Err(WireError::Unrepresentable("a name with such characters")) }
}
