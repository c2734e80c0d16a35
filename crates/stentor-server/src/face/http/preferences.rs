//! Weighted lists of a client's preferences (RFC 9110, 12.4.2 and 12.5).

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Maximum weight, in thousandths.
const WEIGHT_MAX: u16 = 1_000;
/// Maximum number of parsed members of a list. Further ones are ignored.
const MEMBERS_MAX_COUNT: usize = 64;

/// Preferences of a client, with weights in thousandths. Zero means not acceptable.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::face) struct Preferences(Vec<(String, u16)>);

impl Preferences {
    /// Parses a header, which may have several lines. Invalid members are ignored.
    pub(in crate::face) fn of(headers: &HeaderMap, name: &HeaderName) -> Self {
        // Split as bytes, so that an invalid member does not invalidate the others of its line.
        let lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let members = lines.flat_map(|line| line.split(|byte| *byte == b',')).take(MEMBERS_MAX_COUNT);
        Self(members.filter_map(|text| member(str::from_utf8(text).ok()?)).collect())
    }

    /// Returns true if the client stated no preferences.
    pub(in crate::face) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the weight of the first of these words that is present.
    pub(in crate::face) fn weight(&self, words: &[&str]) -> Option<u16> {
        let of = |word: &&str| self.0.iter().find(|(named, _)| named == word).map(|(_, weight)| *weight);
        words.iter().find_map(of)
    }
}

/// Parses one member: a word and its parameters.
fn member(text: &str) -> Option<(String, u16)> {
    let mut parts = text.split(';').map(str::trim);
    let word = parts.next().filter(|word| !word.is_empty())?.to_ascii_lowercase();
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    Some((word, quality.map_or(Some(WEIGHT_MAX), weight)?))
}

/// Parses a weight from 0 to 1 with at most three decimals. The leading zero may be missing.
fn weight(text: &str) -> Option<u16> {
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    let is_short = behind.len() <= 3 && behind.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths = format!("{behind:0<3}").parse::<u16>().ok().filter(|_| is_short)?;
    match whole {
        // Old Java clients omit the leading zero.
        "" if behind.is_empty() => None,
        "" | "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(WEIGHT_MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    fn read(lines: &[&'static str]) -> Preferences {
        let lines = lines.iter().map(|line| (header::ACCEPT, HeaderValue::from_static(line)));
        Preferences::of(&HeaderMap::from_iter(lines), &header::ACCEPT)
    }

    #[test]
    fn members_have_the_weight_that_is_said_and_one_where_none_is() {
        let read = read(&[
            "text/html, Application/XML;charset=utf-8;q=0.9,*/*;q=0.05",
            "a;q=0, b;q=1.000, d; q=.2, e;q=.",
        ]);
        let weights =
            ["text/html", "application/xml", "*/*", "a", "b", "c", "d", "e"].map(|word| read.weight(&[word]));
        assert_eq!(weights, [Some(1_000), Some(900), Some(50), Some(0), Some(1_000), None, Some(200), None]);
    }

    #[test]
    fn the_first_word_that_is_there_decides() {
        let read = read(&["*/*;q=0.5, application/json;q=0.1"]);
        assert_eq!(read.weight(&["application/json", "application/*", "*/*"]), Some(100));
        assert_eq!(read.weight(&["application/xml", "application/*", "*/*"]), Some(500));
    }

    #[test]
    fn what_cannot_be_read_is_passed_over() {
        assert!(read(&[",,;q=1", "a;q=2, b;q=0.1234, c;q=, d;q=1.1, e;q=-1"]).is_empty());
        let foreign =
            [b"a;q=0.5, \xff, b".as_slice(), b"c"].map(|line| HeaderValue::from_bytes(line).expect("fits"));
        let foreign = foreign.map(|line| (header::ACCEPT, line));
        let foreign = Preferences::of(&HeaderMap::from_iter(foreign), &header::ACCEPT);
        assert_eq!(
            ["a", "b", "c"].map(|word| foreign.weight(&[word])),
            [Some(500), Some(1_000), Some(1_000)]
        );
        let long = read(&["a;q=0.1"; 100]);
        assert_eq!(long.0.len(), MEMBERS_MAX_COUNT);
    }
}
