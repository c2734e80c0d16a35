//! Entity tags and preconditions (RFC 9110, 8.8.3 and 13.1). A tag consists of a hash of the JSON representation, and of the format and
//! coding of the body. All forms of a state share the hash, and each form has a tag of its own, as strong tags require.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::format::{AcceptedFormat, BodyFormat};
use crate::contract::{ErrorCode, Problem, ServiceResult, StateCondition, StateTag, StateTags};
use crate::face::http::coding::ContentCoding;
use crate::face::http::preferences::Preferences;

/// Maximum number of tags in one header.
const TAGS_MAX_COUNT: usize = 64;

/// Preconditions of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
}

#[derive(Debug, PartialEq, Eq)]
enum Tags {
    /// Any state.
    Any,
    /// Tags without quotes, each with true if it is weak.
    Some(Vec<(bool, String)>),
}

/// Returns the tag of a reply with this JSON to a request with these headers, and true if the caller already has it.
pub fn tag_of_reply(headers: &HeaderMap, json: &[u8]) -> ServiceResult<(HeaderValue, bool)> {
    let codings = Preferences::of(headers, &header::ACCEPT_ENCODING);
    let (accepted, coding) =
        (AcceptedFormat::wanted(headers)?, ContentCoding::of_reply(&codings, json.len()));
    Conditions::of(headers)?.check_read(&StateTag::of(json), accepted, coding)
}

/// Returns true if these headers allow a change of an object with this JSON representation; `None` stands for an object that does not
/// exist.
pub fn lets_change(headers: &HeaderMap, json: Option<&[u8]>) -> ServiceResult<bool> {
    let condition = Conditions::of(headers)?.of_change();
    Ok(condition.is_none_or(|condition| condition.holds(json.map(StateTag::of).as_ref())))
}

/// Returns the tag of one form of a state, without quotes.
fn form(state: &StateTag, accepted: AcceptedFormat, coding: ContentCoding) -> String {
    let format = match accepted.format {
        BodyFormat::Json => "",
        BodyFormat::Xml => "-xml",
        BodyFormat::Protobuf => "-protobuf",
    };
    let coding = coding.word().map_or_else(String::new, |word| format!("-{word}"));
    format!("{}{format}{coding}", state.as_str())
}

/// Returns a tag as the value of a header.
fn quoted(tag: &str) -> HeaderValue {
    // Hexadecimal digits and words of ours always fit.
    HeaderValue::try_from(format!("\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

impl Conditions {
    /// Parses the preconditions of a request.
    pub(super) fn of(headers: &HeaderMap) -> ServiceResult<Self> {
        let (if_match, if_none_match) =
            (tags(headers, &header::IF_MATCH)?, tags(headers, &header::IF_NONE_MATCH)?);
        Ok(Self { if_match, if_none_match })
    }

    /// Returns the precondition of a change, if any. A tag of any form of a state stands for that state.
    pub(super) fn of_change(&self) -> Option<StateCondition> {
        let (one_of, none_of) = (&self.if_match, &self.if_none_match);
        (one_of.is_some() || none_of.is_some()).then(|| StateCondition {
            one_of: one_of.as_ref().map(|tags| tags.of_states(false)),
            none_of: none_of.as_ref().map(|tags| tags.of_states(true)),
        })
    }

    /// Returns the tag of a read state, and true if the caller already has it.
    pub(super) fn check_read(
        &self,
        state: &StateTag,
        accepted: AcceptedFormat,
        coding: ContentCoding,
    ) -> ServiceResult<(HeaderValue, bool)> {
        if self.if_match.as_ref().is_some_and(|tags| !tags.of_states(false).have(Some(state))) {
            return Err(failed("the current state does not match `If-Match`"));
        }
        let form = form(state, accepted, coding);
        let is_known = match &self.if_none_match {
            None => false,
            Some(Tags::Any) => true,
            Some(Tags::Some(tags)) => tags.iter().any(|(_, tag)| *tag == form),
        };
        Ok((quoted(&form), is_known))
    }
}

impl Tags {
    /// Returns the states of these tags. Weak tags count only if `with_weak` is true.
    fn of_states(&self, with_weak: bool) -> StateTags {
        let Self::Some(tags) = self else { return StateTags::Any };
        let counted = tags.iter().filter(|(is_weak, _)| with_weak || !is_weak);
        StateTags::Some(counted.filter_map(|(_, tag)| tag.split('-').next()).map(str::to_owned).collect())
    }
}

/// Returns the error for a precondition on something without a tag.
pub(super) fn not_comparable() -> Problem {
    failed("this address has no tag for a condition")
}

fn failed(why: &'static str) -> Problem {
    let hint = "read the object again: `ETag` is the tag of its current state";
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

/// Parses a list of tags separated by commas. A tag may contain commas.
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
        let holds = |text: &str, state| {
            let condition = conditions(header::IF_MATCH, text).of_change().expect("a condition");
            condition.holds(state)
        };
        assert!(holds(&format!("\"{}\"", now.as_str()), Some(&now)));
        assert!(holds(&format!("\"a,b\", \"{}-xml-gzip\"", now.as_str()), Some(&now)));
        assert!(holds("*", Some(&now)));
        assert!(!holds(&format!("W/\"{}\"", now.as_str()), Some(&now)));
        assert!(!holds(&format!("\"{}\"", before.as_str()), Some(&now)));
        assert!(!holds("*", None));
        let weak = conditions(header::IF_NONE_MATCH, &format!("W/\"{}\"", now.as_str()));
        assert!(!weak.of_change().expect("a condition").holds(Some(&now)));
        assert_eq!(Conditions::default().of_change(), None);
    }

    #[test]
    fn a_reader_knows_the_form_that_it_names_and_no_other() {
        let state = StateTag::of(b"{}");
        let read = |text: &str, coding| {
            conditions(header::IF_NONE_MATCH, text).check_read(&state, JSON, coding).expect("readable").1
        };
        let (plain, packed) = (format!("W/\"{}\"", state.as_str()), format!("\"{}-gzip\"", state.as_str()));
        assert!(read(&plain, ContentCoding::Identity));
        assert!(!read(&plain, ContentCoding::Gzip));
        assert!(read(&packed, ContentCoding::Gzip));
        assert!(read("*", ContentCoding::Zstd));
    }

    #[test]
    fn a_reader_has_what_was_replied_to_the_same_request_and_may_change_it() {
        let mut headers = HeaderMap::from_iter([
            (header::ACCEPT, HeaderValue::from_static("text/xml")),
            (header::ACCEPT_ENCODING, HeaderValue::from_static("gzip")),
        ]);
        let json = [b' '; 2_000];
        let (tag, is_known) = tag_of_reply(&headers, &json).expect("readable");
        assert!(!is_known && tag.to_str().expect("text").ends_with("-xml-gzip\""), "{tag:?}");
        headers.insert(header::IF_NONE_MATCH, tag.clone());
        assert_eq!(tag_of_reply(&headers, &json).expect("readable"), (tag, true));
        assert_eq!([Some(&json[..]), None].map(|json| lets_change(&headers, json)), [Ok(false), Ok(true)]);
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
