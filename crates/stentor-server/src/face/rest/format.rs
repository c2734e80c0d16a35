//! Formats of bodies, and their negotiation by `Content-Type` and `Accept` (RFC 9110, 8.3 and 12.5.1).

use axum::http::{HeaderMap, HeaderValue, header};

use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::http::preferences::Preferences;

/// Format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFormat {
    Json,
    Xml,
    Protobuf,
}

/// Media types of all bodies, one for each format.
pub(super) const MEDIA_TYPES: [&str; 3] = ["application/json", "application/xml", "application/x-protobuf"];
/// Media types in `Accept`, each with its format and the media type of the reply.
const OFFERS: &[(&str, BodyFormat, &str)] = &[
    ("application/json", BodyFormat::Json, "application/json"),
    ("application/problem+json", BodyFormat::Json, "application/json"),
    ("application/xml", BodyFormat::Xml, "application/xml"),
    ("text/xml", BodyFormat::Xml, "text/xml"),
    ("application/problem+xml", BodyFormat::Xml, "application/xml"),
    ("application/x-protobuf", BodyFormat::Protobuf, "application/x-protobuf"),
    ("application/protobuf", BodyFormat::Protobuf, "application/protobuf"),
];

/// Format and media type of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AcceptedFormat {
    pub(super) format: BodyFormat,
    pub(super) media_type: &'static str,
}

/// Returns the media type of the reply to a request with these headers (RFC 9110, 12.5.1); `None` if the client accepts none of ours.
#[must_use]
pub fn accepted_media_type(headers: &HeaderMap) -> Option<&'static str> {
    AcceptedFormat::of(headers).map(|accepted| accepted.media_type)
}

impl AcceptedFormat {
    const JSON: Self = Self { format: BodyFormat::Json, media_type: "application/json" };

    /// Returns the format with the highest weight, JSON among equals; `None` if the client accepts none of ours.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(header::ACCEPT).iter();
        let (first, second) = (lines.next().map(HeaderValue::as_bytes), lines.next());
        if matches!((first, second), (None | Some(b"*/*" | b"application/json"), None)) {
            return Some(Self::JSON);
        }
        let accepted = Preferences::of(headers, &header::ACCEPT);
        if accepted.is_empty() {
            return Some(Self::JSON);
        }
        let weigh = |name: &str| {
            let family = if name.starts_with("text/") { "text/*" } else { "application/*" };
            // A media type of refusals counts only if it is named explicitly.
            let is_of_refusals = name.contains("problem+");
            let weight = if is_of_refusals {
                accepted.weight(&[name])
            } else {
                // Java's own client sends `*` for all types.
                accepted.weight(&[name, family, "*/*", "*"])
            };
            weight.unwrap_or_default()
        };
        let mut best = (0, None);
        for (name, format, media_type) in OFFERS {
            let weight = weigh(name);
            if weight > best.0 {
                best = (weight, Some(Self { format: *format, media_type }));
            }
        }
        best.1
    }

    /// Like [`Self::of`], but fails if the client accepts none of ours.
    pub(super) fn wanted(headers: &HeaderMap) -> ServiceResult<Self> {
        let none = || format!("a reply can be {}", MEDIA_TYPES.join(", "));
        Self::of(headers).ok_or_else(|| Problem::new(ErrorCode::NotAcceptable, none()))
    }
}

impl BodyFormat {
    /// Returns the format of a request's body.
    pub(super) fn of_request(headers: &HeaderMap) -> ServiceResult<Self> {
        let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind =
            given.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/json" => Ok(Self::Json),
            "application/xml" | "text/xml" => Ok(Self::Xml),
            "application/x-protobuf" | "application/protobuf" => Ok(Self::Protobuf),
            kind if kind.starts_with("application/") && kind.ends_with("+json") => Ok(Self::Json),
            _ => {
                let taken = format!("the content type must be one of {}", MEDIA_TYPES.join(", "));
                Err(Problem::new(ErrorCode::UnsupportedMediaType, taken))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(text: &'static str) -> Option<&'static str> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(text))]);
        AcceptedFormat::of(&headers).map(|accepted| accepted.media_type)
    }

    #[test]
    fn the_format_with_the_largest_weight_is_taken_and_json_among_equals() {
        assert_eq!(AcceptedFormat::of(&HeaderMap::new()), Some(AcceptedFormat::JSON));
        assert_eq!(accepted("*/*"), Some("application/json"));
        assert_eq!(accepted("application/*"), Some("application/json"));
        assert_eq!(accepted("application/xml"), Some("application/xml"));
        assert_eq!(accepted("text/*, application/json;q=0.9"), Some("text/xml"));
        assert_eq!(
            accepted("application/json;q=0.5, application/x-protobuf"),
            Some("application/x-protobuf")
        );
        assert_eq!(accepted("*/*, application/json;q=0.1"), Some("application/xml"));
        assert_eq!(accepted("text/html, application/xml;q=0.9, */*;q=0.8"), Some("application/xml"));
    }

    #[test]
    fn what_stands_on_several_lines_is_one_list() {
        let lines =
            ["*/*", "application/json;q=0"].map(|text| (header::ACCEPT, HeaderValue::from_static(text)));
        assert_eq!(accepted_media_type(&HeaderMap::from_iter(lines)), accepted("*/*, application/json;q=0"));
        assert_eq!(accepted("*/*, application/json;q=0"), Some("application/xml"));
    }

    #[test]
    fn what_is_not_ours_is_not_acceptable_and_what_cannot_be_read_is_not_there() {
        assert_eq!(accepted("text/html"), None);
        // The header of Java clients before version 21.
        let java = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
        assert_eq!(accepted(java), Some("application/json"));
        assert_eq!(accepted("*"), Some("application/json"));
        assert_eq!(accepted("application/json;q=0"), None);
        assert_eq!(accepted("application/json;q=0, text/xml;q=0.001"), Some("text/xml"));
        assert_eq!(accepted(";;,"), Some("application/json"));
    }
}
