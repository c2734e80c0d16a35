//! Refusals as faults.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use stentor_wire::WireError;
use stentor_wire::xml::allowed;
use stentor_wire::xmlrpc::{CODE_NO_SUCH_METHOD, RpcFault};

use super::{TEXT_XML, written};
use crate::contract::{ErrorCode, Problem};

/// Returns a refusal as a fault: its number, and a text that begins with its code and names the field.
pub(super) fn fault(problem: &Problem) -> RpcFault {
    let mut text = problem.code.as_str().to_owned();
    if let Some(field) = problem.field.as_deref().filter(|field| !field.is_empty()) {
        text.push_str(&format!(" at {field}"));
    }
    text.push_str(&format!(": {}", problem.detail));
    if let Some(hint) = problem.hint_with(str::to_owned) {
        text.push_str(&format!(" ({hint})"));
    }
    if let Some(seconds) = problem.retry_after_seconds {
        text.push_str(&format!("; come back in {seconds} s"));
    }
    // What a caller has sent in JSON may stand in it.
    RpcFault { code: problem.code.number(), text: allowed(&text).into_owned() }
}

/// Returns the fault for an unknown method.
pub(super) fn no_such_method(method: &str) -> RpcFault {
    let shown: String = method.chars().take(100).collect();
    let text = format!("not_found: there is no method `{shown}`; system.listMethods lists them");
    RpcFault { code: CODE_NO_SUCH_METHOD, text }
}

/// Returns the error for a document that cannot be parsed.
pub(super) fn unreadable(error: WireError) -> Problem {
    let code = match error {
        WireError::TooLarge { .. } => ErrorCode::PayloadTooLarge,
        _ => ErrorCode::InvalidRequest,
    };
    Problem::new(code, format!("the call cannot be read: {error}"))
}

/// Writes a refusal as a document; as a line of text where it cannot be written as one.
pub(in crate::face) fn document(problem: &Problem) -> Vec<u8> {
    written(&Err(fault(problem))).unwrap_or_else(|failure| failure.to_string().into_bytes())
}

/// Writes a refusal into a response. The status is 200, as the specification requires for faults.
pub(super) fn write(response: &mut Response, problem: &Problem, _: &str) {
    let (status, kind, body) = match written(&Err(fault(problem))) {
        Ok(body) => (StatusCode::OK, TEXT_XML, body),
        Err(failure) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", failure.to_string().into_bytes())
        }
    };
    *response.status_mut() = status;
    *response.body_mut() = body.into();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_though_its_field_has_letters_that_xml_cannot_carry() {
        let text = String::from_utf8(document(&Problem::field("a\u{1}b", "is unknown"))).expect("text");
        assert!(text.contains("invalid_field at a\u{fffd}b: is unknown"), "{text}");
    }

    #[test]
    fn the_page_has_the_number_of_each_code() {
        let page = include_str!("../../../../../docs/faces/xmlrpc.md");
        for code in ErrorCode::ALL {
            let cells = format!("| {} | `{}` |", code.number(), code.as_str());
            assert!(page.contains(&cells), "{cells}");
        }
    }
}
