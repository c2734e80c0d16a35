//! A send request: its encoding and its audience.

use super::errors::MISSING_REGISTRATION;
use super::form;
use super::message::{GcmAddress, GcmRefusal, text};
use crate::json::JsonNode;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

const MAX_TOKENS: usize = 1000;

/// The encoding of a request and of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GcmForm {
    Json,
    PlainText,
}

impl GcmForm {
    /// Reads the form from the content type; plain text if absent, `None` for any other type.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let Some(kind) = headers.get(CONTENT_TYPE) else { return Some(Self::PlainText) };
        let kind = kind.to_str().ok()?.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/json" => Some(Self::Json),
            "application/x-www-form-urlencoded" => Some(Self::PlainText),
            _ => None,
        }
    }

    /// Reads a body. Fails with a sentence.
    pub(super) fn read(self, body: &[u8]) -> Result<JsonNode<'_>, String> {
        match self {
            Self::Json => match JsonNode::parse(body) {
                Some(node) if node.entries().is_some() => Ok(node),
                _ => Err("JSON_PARSING_ERROR: the body is not a JSON object".to_owned()),
            },
            Self::PlainText => form::parse(body).map_err(str::to_owned),
        }
    }
}

/// The audience of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GcmAudience<'a> {
    /// Some tokens, in the request's order; the answer has a result for each.
    Tokens(Vec<&'a str>),
    /// One topic or condition.
    Wide(GcmAddress<'a>),
    /// A device group, by its notification key.
    Group(&'a str),
}

impl<'a> GcmAudience<'a> {
    /// Reads the audience of a request. `is_group` recognizes notification keys.
    pub(super) fn of(request: &'a JsonNode<'a>, is_group: impl Fn(&str) -> bool) -> Result<Self, GcmRefusal> {
        let to = text(request, "to")?;
        let condition = text(request, "condition")?;
        let group = text(request, "notification_key")?;
        let list = request.exact("registration_ids");
        let given = [to.is_some(), condition.is_some(), group.is_some(), list.is_some()];
        if given.iter().filter(|given| **given).count() > 1 {
            let sentence =
                "Must use one of \"registration_ids\", \"to\", \"condition\" and \"notification_key\"";
            return Err(GcmRefusal::Malformed(sentence.to_owned()));
        }
        match (to, condition, group, list) {
            (Some(""), ..) => Err(GcmRefusal::Code(MISSING_REGISTRATION)),
            // A notification key looks like a token, and `to` takes both.
            (Some(to), ..) if is_group(to) => Ok(Self::Group(to)),
            (Some(to), ..) => Ok(match GcmAddress::to(to) {
                GcmAddress::Token(token) => Self::Tokens(vec![token]),
                wide => Self::Wide(wide),
            }),
            (_, Some(condition), ..) => Ok(Self::Wide(GcmAddress::Condition(condition))),
            (_, _, Some(group), _) => Ok(Self::Group(group)),
            (.., Some(list)) => tokens(list).map(Self::Tokens),
            _ => Err(GcmRefusal::Code(MISSING_REGISTRATION)),
        }
    }
}

/// Reads `registration_ids`.
pub(super) fn tokens<'a>(list: &'a JsonNode<'a>) -> Result<Vec<&'a str>, GcmRefusal> {
    let malformed = |sentence: String| Err(GcmRefusal::Malformed(sentence));
    let JsonNode::List(nodes) = list else {
        return malformed("Field \"registration_ids\" must be a JSON array".to_owned());
    };
    match nodes.len() {
        0 => return malformed("\"registration_ids\" field cannot be empty".to_owned()),
        count if count > MAX_TOKENS => {
            return malformed(format!(
                "Number of messages on bulk ({count}) exceeds maximum allowed ({MAX_TOKENS})"
            ));
        }
        _ => {}
    }
    let texts: Option<Vec<&str>> = nodes.iter().map(JsonNode::text).collect();
    texts.map_or_else(|| malformed("\"registration_ids\" must hold strings".to_owned()), Ok)
}
