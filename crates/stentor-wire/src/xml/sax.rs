//! A push reader: calls a handler for every start, text and end.

use super::pull::{Pull, Token};
use super::{Tag, decode};
use crate::{DocumentLimits, WireError};

/// The callbacks of a reader; an error ends the reading.
pub trait Handler {
    /// An element starts.
    fn start(&mut self, tag: &Tag) -> Result<(), WireError>;
    /// A piece of text of the current element; adjacent pieces belong together.
    fn text(&mut self, text: &str) -> Result<(), WireError>;
    /// The current element ends.
    fn end(&mut self) -> Result<(), WireError>;
}

/// Reads a document to its end, calling the handler.
pub fn parse(bytes: &[u8], limits: &DocumentLimits, handler: &mut impl Handler) -> Result<(), WireError> {
    let text = decode(bytes, limits)?;
    let mut pull = Pull::new(&text, limits);
    loop {
        match pull.token()? {
            Token::Start(tag) => handler.start(&tag)?,
            Token::Text(text) => handler.text(&text)?,
            Token::End => handler.end()?,
            Token::Eof => return Ok(()),
        }
    }
}
