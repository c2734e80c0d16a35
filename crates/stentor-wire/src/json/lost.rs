//! Numbers that a JSON reader would round: integers that do not fit 64 bits, and fractions with more digits than a double can distinguish.

use std::borrow::Cow;

/// Digits that always fit 64 bits.
const SAFE_DIGITS: usize = 18;
/// Digits that identify any double (IEEE 754); many writers print all of them even if fewer suffice.
const DOUBLE_DIGITS: usize = 17;

/// A number that would lose digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostNumber {
    /// Its path, such as `apns.payload.a[0]`.
    pub path: String,
}

/// Finds the first number of a document that would be rounded. Text that is not JSON contains none.
#[must_use]
pub fn lost_number(document: &[u8]) -> Option<LostNumber> {
    let mut at = 0;
    while at < document.len() {
        match document[at] {
            b'"' => at = end_of_text(document, at),
            b'0'..=b'9' | b'-' => {
                let end = end_of_number(document, at);
                if is_lost(&document[at..end]) {
                    return Some(LostNumber { path: path_to(document, at) });
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    None
}

/// Converts the numbers among the values of the object `name` to texts, digit for digit, so that `1.10` does not become `1.1`.
#[must_use]
pub fn numbers_as_texts<'a>(document: &'a [u8], name: &str) -> Cow<'a, [u8]> {
    let (mut place, mut at, mut taken, mut written) = (DocumentPosition::default(), 0, 0, Vec::new());
    while at < document.len() {
        let mut next = place.step(document, at);
        if matches!(document[at], b'0'..=b'9' | b'-') {
            next = end_of_number(document, at);
            if place.is_value_of(name) {
                written.extend_from_slice(&document[taken..at]);
                written.push(b'"');
                written.extend_from_slice(&document[at..next]);
                written.push(b'"');
                taken = next;
            }
        }
        at = next;
    }
    if written.is_empty() {
        return Cow::Borrowed(document);
    }
    written.extend_from_slice(&document[taken..]);
    Cow::Owned(written)
}

fn is_lost(number: &[u8]) -> bool {
    if number.len() <= DOUBLE_DIGITS {
        return false;
    }
    let text = std::str::from_utf8(number).unwrap_or_default();
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    if digits.iter().all(u8::is_ascii_digit) {
        return digits.len() > SAFE_DIGITS && text.parse::<u64>().is_err() && text.parse::<i64>().is_err();
    }
    let Some((given, power)) = decimal(text) else { return false };
    if given.len() <= DOUBLE_DIGITS {
        return false;
    }
    let parsed = text.parse::<f64>().ok().filter(|number| number.is_finite());
    parsed.is_some_and(|number| decimal(&format!("{number:e}")) != Some((given, power)))
}

/// Returns the digits of a number without zeros at either end, and the power of ten of the last one.
fn decimal(text: &str) -> Option<(String, i64)> {
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('-');
    let power = power.parse::<i64>().ok()?.checked_sub(i64::try_from(part.len()).ok()?)?;
    let all = format!("{whole}{part}");
    let digits = all.trim_end_matches('0');
    let zeros = i64::try_from(all.len() - digits.len()).ok()?;
    Some((digits.trim_start_matches('0').to_owned(), power.checked_add(zeros)?))
}

fn end_of_number(document: &[u8], from: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    from + document[from..].iter().take_while(|byte| is_part(byte)).count()
}

/// Returns the position after a string that begins at a quotation mark.
fn end_of_text(document: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < document.len() {
        match document[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    document.len()
}

/// One level of a document: the name or index being read.
enum PathLevel {
    Object(String),
    Array(usize),
}

/// The position of a reader in a document.
#[derive(Default)]
struct DocumentPosition {
    levels: Vec<PathLevel>,
    text: String,
}

impl DocumentPosition {
    /// Advances over the token at `at`; returns the position after it.
    fn step(&mut self, document: &[u8], at: usize) -> usize {
        match document[at] {
            b'{' => self.levels.push(PathLevel::Object(String::new())),
            b'[' => self.levels.push(PathLevel::Array(0)),
            b'}' | b']' => _ = self.levels.pop(),
            b'"' => {
                let next = end_of_text(document, at);
                let text = &document[at..next.min(document.len())];
                self.text = serde_json::from_slice(text).unwrap_or_default();
                return next;
            }
            b':' => {
                if let Some(PathLevel::Object(name)) = self.levels.last_mut() {
                    *name = std::mem::take(&mut self.text);
                }
            }
            b',' => {
                if let Some(PathLevel::Array(place)) = self.levels.last_mut() {
                    *place += 1;
                }
            }
            _ => {}
        }
        at + 1
    }

    fn is_value_of(&self, object: &str) -> bool {
        matches!(&self.levels[..], [PathLevel::Object(name), PathLevel::Object(_)] if name == object)
    }
}

/// Returns the path of a value.
fn path_to(document: &[u8], value: usize) -> String {
    let (mut place, mut at) = (DocumentPosition::default(), 0);
    while at < value {
        at = place.step(document, at);
    }
    written(&place.levels)
}

fn written(levels: &[PathLevel]) -> String {
    let mut path = String::new();
    for level in levels {
        match level {
            PathLevel::Object(name) if path.is_empty() => path.push_str(name),
            PathLevel::Object(name) => path = format!("{path}.{name}"),
            PathLevel::Array(place) => path = format!("{path}[{place}]"),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str) -> Option<String> {
        lost_number(document.as_bytes()).map(|lost| lost.path)
    }

    #[test]
    fn a_number_that_would_be_rounded_is_found_with_its_path() {
        for (document, path) in [
            (r#"{"apns":{"payload":{"a":18446744073709551616}}}"#, "apns.payload.a"),
            (r#"{"a":[1,{"b\"":[0,-9223372036854775809]}]}"#, "a[1].b\"[1]"),
            ("123456789012345678901234567890", ""),
            (r#"{"a":{"b":0.12345678901234567890123}}"#, "a.b"),
            (r#"{"a":[-1.2345678901234567891e-7]}"#, "a[0]"),
            (r#"{"a":12345678901234567890.5}"#, "a"),
        ] {
            assert_eq!(found(document).as_deref(), Some(path), "{document}");
        }
    }

    #[test]
    fn what_can_be_kept_is_no_lost_number() {
        for document in [
            r#"{"a":18446744073709551615,"b":-9223372036854775808,"c":0}"#,
            r#"{"18446744073709551616":"18446744073709551616 \" 99999999999999999999"}"#,
            r#"{"a":1e300,"b":0.10000000000000001,"c":1.10000000000000000000000,"d":1000000000000000000000.0}"#,
            r#"{"a":-0.0000000000000000000000123,"b":18446744073709551616e-999999999999999999999}"#,
            "{\"a",
            "\"\\",
            "-",
            "",
        ] {
            assert_eq!(found(document), None, "{document}");
        }
    }

    #[test]
    fn numbers_of_one_object_are_texts_to_the_last_digit() {
        let texts = |document: &str| {
            let texts = numbers_as_texts(document.as_bytes(), "data").into_owned();
            String::from_utf8(texts).expect("a text")
        };
        assert_eq!(
            texts(
                r#"{"to":"1","data":{"a":1.10,"b": 1e3 ,"c":[1],"d":{"e":2},"f":-12345678901234567890123},"ttl":4}"#
            ),
            r#"{"to":"1","data":{"a":"1.10","b": "1e3" ,"c":[1],"d":{"e":2},"f":"-12345678901234567890123"},"ttl":4}"#
        );
        for document in
            [r#"{"other":{"a":1},"n":{"data":{"a":1}},"data":1}"#, r#"{"data":{"a":"1 2"}}"#, "{", "[1]"]
        {
            assert_eq!(texts(document), document);
        }
    }
}
