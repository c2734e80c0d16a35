//! From bytes to characters.

use super::is_allowed;
use crate::{DocumentLimits, WireError};
use std::borrow::Cow;

/// Bytes within which an encoding must be declared.
const DECLARATION_MAX_BYTES: usize = 200;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

enum Encoding {
    Utf8,
    Latin1,
}

/// Decodes a document as UTF-8, ASCII or Latin-1, according to its XML declaration. Checks its size and its characters.
pub fn decode<'a>(bytes: &'a [u8], limits: &DocumentLimits) -> Result<Cow<'a, str>, WireError> {
    limits.check_size(bytes.len())?;
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = match encoding(bytes)? {
        Encoding::Latin1 => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
        Encoding::Utf8 => {
            let text = std::str::from_utf8(bytes);
            Cow::Borrowed(text.map_err(|error| WireError::Malformed(format!("not UTF-8: {error}")))?)
        }
    };
    // Nearly every document is ASCII, for which this checks many bytes at once.
    if text.bytes().all(is_plain) {
        return Ok(text);
    }
    match text.chars().find(|letter| !is_allowed(*letter)) {
        None => Ok(text),
        Some(letter) => Err(WireError::Malformed(format!("the character {letter:?} is not allowed"))),
    }
}

/// Returns true if a byte is an ASCII character that is allowed everywhere.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

fn encoding(bytes: &[u8]) -> Result<Encoding, WireError> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARATION_MAX_BYTES)]);
    let Some(declared) = head.strip_prefix("<?xml").and_then(declared) else { return Ok(Encoding::Utf8) };
    match declared.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" | "us-ascii" | "ascii" => Ok(Encoding::Utf8),
        "iso-8859-1" | "latin1" => Ok(Encoding::Latin1),
        _ => Err(WireError::Forbidden("encodings other than UTF-8, ASCII and ISO-8859-1")),
    }
}

/// Finds the value of `encoding` in an XML declaration.
fn declared(declaration: &str) -> Option<&str> {
    let inside = declaration.split("?>").next()?;
    let after = inside.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = after.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    after[1..].split(quote).next()
}
