//! Entity tags and conditions (RFC 9110, 8.8.3 and 13.1). A tag is a hash of what is shown, as JSON has it, and what it is
//! written in: all forms of one state share the hash, and each form has a tag of its own, as strong tags must.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::format::{AcceptedFormat, BodyFormat};
use crate::contract::{ErrorCode, Problem, ServiceResult, hash};
use crate::face::http::coding::ContentCoding;

/// Bytes of a hash that stand in a tag.
const HASH_BYTES: usize = 16;
/// Most tags in one header.
const TAGS_MAX_COUNT: usize = 64;

/// A hash of what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StateTag(String);

/// What must hold for a request to be served.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
}

#[derive(Debug, PartialEq, Eq)]
enum Tags {
    /// Whatever there is.
    Any,
    /// What stands between the quotes, and whether it is weak.
    Some(Vec<(bool, String)>),
}

impl StateTag {
    /// Returns the tag of what is shown, written as JSON.
    pub(super) fn of(json: &[u8]) -> Self {
        let hash = hash([json]);
        Self(hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the tag of one form of it, without quotes.
    fn form(&self, accepted: AcceptedFormat, coding: ContentCoding) -> String {
        let format = match accepted.format {
            BodyFormat::Json => "",
            BodyFormat::Xml => "-xml",
            BodyFormat::Protobuf => "-protobuf",
        };
        let coding = coding.word().map_or_else(String::new, |word| format!("-{word}"));
        format!("{}{format}{coding}", self.0)
    }
}

/// Returns the header of a tag.
fn quoted(tag: &str) -> HeaderValue {
    // Hexadecimal digits and words of ours always fit.
    HeaderValue::try_from(format!("\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

impl Conditions {
    /// Reads the conditions of a request.
    pub(super) fn of(headers: &HeaderMap) -> ServiceResult<Self> {
        let (if_match, if_none_match) =
            (tags(headers, &header::IF_MATCH)?, tags(headers, &header::IF_NONE_MATCH)?);
        Ok(Self { if_match, if_none_match })
    }

    /// Returns whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.if_match.is_none() && self.if_none_match.is_none()
    }

    /// Refuses a change of what is in this state, or of what does not exist, when a condition does not hold.
    pub(super) fn check_change(&self, state: Option<&StateTag>) -> ServiceResult<()> {
        if self.if_match.as_ref().is_some_and(|tags| !tags.hold(state, false)) {
            return Err(failed("it is not, or no longer, what `If-Match` says"));
        }
        if self.if_none_match.as_ref().is_some_and(|tags| tags.hold(state, true)) {
            return Err(failed("it is what `If-None-Match` says that it must not be"));
        }
        Ok(())
    }

    /// Returns the tag of what is read, and whether the caller has it already.
    pub(super) fn check_read(
        &self,
        state: &StateTag,
        accepted: AcceptedFormat,
        coding: ContentCoding,
    ) -> ServiceResult<(HeaderValue, bool)> {
        if self.if_match.as_ref().is_some_and(|tags| !tags.hold(Some(state), false)) {
            return Err(failed("it is not, or no longer, what `If-Match` says"));
        }
        let form = state.form(accepted, coding);
        let is_known = match &self.if_none_match {
            None => false,
            Some(Tags::Any) => true,
            Some(Tags::Some(tags)) => tags.iter().any(|(_, tag)| *tag == form),
        };
        Ok((quoted(&form), is_known))
    }
}

impl Tags {
    /// Returns whether one of them is a form of a state; a weak one counts only where that is enough.
    fn hold(&self, state: Option<&StateTag>, with_weak: bool) -> bool {
        let Some(StateTag(state)) = state else { return false };
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.iter().any(|(is_weak, tag)| {
                (with_weak || !is_weak) && tag.split('-').next() == Some(state.as_str())
            }),
        }
    }
}

/// Returns the refusal of a condition that cannot be compared with anything.
pub(super) fn not_comparable() -> Problem {
    failed("nothing here has a tag that a condition could be compared with")
}

fn failed(why: &'static str) -> Problem {
    let hint = "read it again: `ETag` is the tag of its present state";
    Problem::new(ErrorCode::PreconditionFailed, why).with_hint(hint)
}

fn tags(headers: &HeaderMap, name: &HeaderName) -> ServiceResult<Option<Tags>> {
    if !headers.contains_key(name) {
        return Ok(None);
    }
    let unreadable = || {
        let detail = format!("`{name}` must be `*`, or one to {TAGS_MAX_COUNT} tags in quotes");
        Problem::new(ErrorCode::InvalidRequest, detail)
    };
    let lines: Option<Vec<_>> = headers.get_all(name).iter().map(|line| line.to_str().ok()).collect();
    let text = lines.ok_or_else(unreadable)?.join(",");
    if text.trim() == "*" {
        return Ok(Some(Tags::Any));
    }
    let read = listed(&text).filter(|tags| (1..=TAGS_MAX_COUNT).contains(&tags.len()));
    Ok(Some(Tags::Some(read.ok_or_else(unreadable)?)))
}

/// Reads tags with commas between them; a comma may also stand in a tag.
fn listed(mut text: &str) -> Option<Vec<(bool, String)>> {
    let mut tags = Vec::new();
    loop {
        text = text.trim_start_matches([' ', '\t', ',']);
        if text.is_empty() {
            return Some(tags);
        }
        let strong = text.strip_prefix("W/");
        let (tag, rest) = strong.unwrap_or(text).strip_prefix('"')?.split_once('"')?;
        tags.push((strong.is_some(), tag.to_owned()));
        text = rest;
        if !text.trim_start().is_empty() && !text.trim_start().starts_with(',') {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: AcceptedFormat = AcceptedFormat { format: BodyFormat::Json, media_type: "application/json" };

    fn conditions(name: HeaderName, text: &str) -> Conditions {
        let value = HeaderValue::try_from(text).expect("fits");
        Conditions::of(&HeaderMap::from_iter([(name, value)])).expect("readable")
    }

    #[test]
    fn a_change_goes_on_when_any_form_of_the_present_state_is_named_and_none_weakly() {
        let (now, before) = (StateTag::of(b"{}"), StateTag::of(b"[]"));
        let told = |text: &str| conditions(header::IF_MATCH, text).check_change(Some(&now)).is_ok();
        assert!(told(&format!("\"{}\"", now.0)));
        assert!(told(&format!("\"a,b\", \"{}-xml-gzip\"", now.0)));
        assert!(told("*"));
        assert!(!told(&format!("W/\"{}\"", now.0)));
        assert!(!told(&format!("\"{}\"", before.0)));
        assert!(conditions(header::IF_MATCH, "*").check_change(None).is_err());
    }

    #[test]
    fn what_must_not_be_there_is_refused_when_it_is() {
        let now = StateTag::of(b"{}");
        assert!(conditions(header::IF_NONE_MATCH, "*").check_change(None).is_ok());
        assert!(conditions(header::IF_NONE_MATCH, "*").check_change(Some(&now)).is_err());
        let weak = format!("W/\"{}\"", now.0);
        assert!(conditions(header::IF_NONE_MATCH, &weak).check_change(Some(&now)).is_err());
    }

    #[test]
    fn a_reader_knows_the_form_that_it_names_and_no_other() {
        let state = StateTag::of(b"{}");
        let read = |text: &str, coding| {
            conditions(header::IF_NONE_MATCH, text).check_read(&state, JSON, coding).expect("readable").1
        };
        let (plain, packed) = (format!("W/\"{}\"", state.0), format!("\"{}-gzip\"", state.0));
        assert!(read(&plain, ContentCoding::Identity));
        assert!(!read(&plain, ContentCoding::Gzip));
        assert!(read(&packed, ContentCoding::Gzip));
        assert!(read("*", ContentCoding::Zstd));
    }

    #[test]
    fn what_is_no_list_of_tags_is_refused() {
        for text in ["abc", "\"a", "\"a\" \"b\"", "", "W/", "*,*"] {
            let value = HeaderValue::try_from(text).expect("fits");
            let read = Conditions::of(&HeaderMap::from_iter([(header::IF_MATCH, value)]));
            assert_eq!(read.map_err(|problem| problem.code), Err(ErrorCode::InvalidRequest), "{text}");
        }
    }
}
