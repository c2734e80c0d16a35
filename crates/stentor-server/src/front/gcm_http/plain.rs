//! The plain-text format of the first years: a form with one token; the reply consists of lines.

use axum::extract::Query;
use axum::http::Uri;
use serde_json::Value;

use super::multicast;
use super::reply::{GcmError, SendReply, TokenResult};
use super::request::{LegacySendRequest, unreadable};
use crate::contract::ServiceResult;
use crate::front::sending::Sender;

/// Largest form: the largest message with every byte percent-encoded.
const FORM_MAX_BYTES: usize = 32 * 1_024;

/// Sends the message of a form, and returns the lines of the reply.
pub(super) async fn send(sender: &Sender<'_>, form: &[u8]) -> ServiceResult<String> {
    let reply = multicast::send(sender, read(form)?).await?;
    Ok(match reply {
        SendReply::Tokens { results, .. } => results.iter().map(line).collect(),
        SendReply::Audience { message_id } => format!("id={message_id}\n"),
        SendReply::Refused { error } => format!("Error={error}\n"),
        SendReply::Group { success: 0, .. } => format!("Error={}\n", GcmError::NotRegistered.as_str()),
        SendReply::Group { success, .. } => format!("id={success}\n"),
    })
}

fn line(result: &TokenResult) -> String {
    match result {
        TokenResult::Sent { message_id, registration_id: None } => format!("id={message_id}\n"),
        TokenResult::Sent { message_id, registration_id: Some(token) } => {
            format!("id={message_id}\nregistration_id={token}\n")
        }
        TokenResult::Failed { error } => format!("Error={error}\n"),
    }
}

fn read(form: &[u8]) -> ServiceResult<LegacySendRequest> {
    let mut request = LegacySendRequest::default();
    for (name, value) in pairs(form)? {
        match (name.as_str(), name.strip_prefix("data.")) {
            ("registration_id", _) if value.is_empty() => {}
            ("registration_id", _) => request.set_token(value),
            ("collapse_key", _) => request.collapse_key = Some(value),
            ("restricted_package_name", _) => request.restricted_package_name = Some(value),
            ("dry_run", _) => request.dry_run = is_set(&value),
            // A value that is no number counts as out of range.
            ("time_to_live", _) => request.time_to_live = Some(value.parse().unwrap_or(-1)),
            (_, Some(key)) => _ = request.data.insert(key.to_owned(), Value::String(value)),
            _ => {}
        }
    }
    Ok(request)
}

fn is_set(value: &str) -> bool {
    value == "1" || value.eq_ignore_ascii_case("true")
}

fn pairs(form: &[u8]) -> ServiceResult<Vec<(String, String)>> {
    let wrong = || unreadable("the body is neither JSON by its content type nor a form");
    let text = std::str::from_utf8(form).map_err(|_| wrong())?.trim();
    if text.len() > FORM_MAX_BYTES {
        return Err(unreadable(&format!("a form may have at most {FORM_MAX_BYTES} bytes")));
    }
    let uri: Uri = format!("/?{text}").parse().map_err(|_| wrong())?;
    let Query(pairs) = Query::try_from_uri(&uri).map_err(|_| wrong())?;
    Ok(pairs)
}
