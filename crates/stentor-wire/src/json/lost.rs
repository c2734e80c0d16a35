//! Whole numbers that a reader of JSON would round: they fit no 64 bits, and become fractions of 53.

/// Digits that every number of 64 bits can have.
const SAFE_DIGITS: usize = 18;

/// A whole number that cannot be kept to its last digit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostNumber {
    /// Where it stands, such as `apns.payload.a[0]`.
    pub path: String,
}

/// Finds the first whole number of a document that has no place in 64 bits. What is no JSON has none.
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

fn is_lost(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    if digits.len() <= SAFE_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let text = std::str::from_utf8(number).unwrap_or_default();
    text.parse::<u64>().is_err() && text.parse::<i64>().is_err()
}

fn end_of_number(document: &[u8], from: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    from + document[from..].iter().take_while(|byte| is_part(byte)).count()
}

/// Returns the place behind a text that begins at a quotation mark.
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

/// One level of a document: the name or the place that is being read.
enum PathLevel {
    Object(String),
    Array(usize),
}

/// Returns where a value stands.
fn path_to(document: &[u8], value: usize) -> String {
    let (mut levels, mut at, mut text) = (Vec::new(), 0, String::new());
    while at < value {
        let mut next = at + 1;
        match document[at] {
            b'{' => levels.push(PathLevel::Object(String::new())),
            b'[' => levels.push(PathLevel::Array(0)),
            b'}' | b']' => _ = levels.pop(),
            b'"' => {
                next = end_of_text(document, at);
                text = serde_json::from_slice(&document[at..next.min(document.len())]).unwrap_or_default();
            }
            b':' => {
                if let Some(PathLevel::Object(name)) = levels.last_mut() {
                    *name = std::mem::take(&mut text);
                }
            }
            b',' => {
                if let Some(PathLevel::Array(place)) = levels.last_mut() {
                    *place += 1;
                }
            }
            _ => {}
        }
        at = next;
    }
    written(&levels)
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
    fn a_whole_number_that_fits_no_64_bits_is_found_with_its_path() {
        for (document, path) in [
            (r#"{"apns":{"payload":{"a":18446744073709551616}}}"#, "apns.payload.a"),
            (r#"{"a":[1,{"b\"":[0,-9223372036854775809]}]}"#, "a[1].b\"[1]"),
            ("123456789012345678901234567890", ""),
        ] {
            assert_eq!(found(document).as_deref(), Some(path), "{document}");
        }
    }

    #[test]
    fn what_can_be_kept_is_no_lost_number() {
        for document in [
            r#"{"a":18446744073709551615,"b":-9223372036854775808,"c":0}"#,
            r#"{"18446744073709551616":"18446744073709551616 \" 99999999999999999999"}"#,
            r#"{"a":1e300,"b":0.12345678901234567890123}"#,
            "{\"a",
            "\"\\",
            "-",
            "",
        ] {
            assert_eq!(found(document), None, "{document}");
        }
    }
}
