//! The responses of WNS: each with its status, the word of `X-WNS-Status` and a sentence.

use crate::policy::{Dialect, ServiceError, WeightedMix, WeightedRefusal};
use http::StatusCode;

pub(super) const BAD_REQUEST: &str = "BadRequest";
pub(super) const UNAUTHORIZED: &str = "Unauthorized";
pub(super) const FORBIDDEN: &str = "Forbidden";
pub(super) const NOT_FOUND: &str = "NotFound";
pub(super) const METHOD_NOT_ALLOWED: &str = "MethodNotAllowed";
pub(super) const GONE: &str = "Gone";
pub(super) const TOO_LARGE: &str = "TooLarge";
/// The notification is dropped although the request is in order.
pub(super) const DROPPED: &str = "Dropped";
/// The app server sends too much to one channel.
pub(super) const CHANNEL_THROTTLED: &str = "ChannelThrottled";
const APP_THROTTLED: &str = "AppThrottled";
const INTERNAL_ERROR: &str = "InternalError";
const UNAVAILABLE: &str = "Unavailable";

/// One response to a notification that is not taken over.
pub(super) struct Row {
    pub(super) code: &'static str,
    pub(super) status: StatusCode,
    /// The value of `X-WNS-Status`.
    pub(super) word: &'static str,
    /// The value of `X-WNS-Error-Description`.
    pub(super) sentence: &'static str,
}

const fn row(code: &'static str, status: StatusCode, sentence: &'static str) -> Row {
    Row { code, status, word: "dropped", sentence }
}

const fn throttled(code: &'static str, word: &'static str, sentence: &'static str) -> Row {
    Row { code, status: StatusCode::NOT_ACCEPTABLE, word, sentence }
}

const ROWS: &[Row] = &[
    row(BAD_REQUEST, StatusCode::BAD_REQUEST, "One or more headers were specified incorrectly."),
    row(UNAUTHORIZED, StatusCode::UNAUTHORIZED, "The access token is missing, wrong or expired."),
    row(FORBIDDEN, StatusCode::FORBIDDEN, "The channel belongs to another client."),
    row(NOT_FOUND, StatusCode::NOT_FOUND, "The channel URI is not valid."),
    row(METHOD_NOT_ALLOWED, StatusCode::METHOD_NOT_ALLOWED, "Notifications are sent with POST."),
    throttled(APP_THROTTLED, "appthrottled", "The cloud service exceeded its throttle limit."),
    throttled(CHANNEL_THROTTLED, "channelthrottled", "The cloud service exceeded the limit of this channel."),
    row(GONE, StatusCode::GONE, "The channel expired."),
    row(TOO_LARGE, StatusCode::PAYLOAD_TOO_LARGE, "The payload exceeds 5000 bytes."),
    row(INTERNAL_ERROR, StatusCode::INTERNAL_SERVER_ERROR, "An internal failure occurred."),
    row(UNAVAILABLE, StatusCode::SERVICE_UNAVAILABLE, "The service is unavailable."),
    row(DROPPED, StatusCode::OK, "The notification was dropped."),
];

pub(super) const DIALECT: Dialect =
    Dialect { knows: |code| find(code).is_some(), quota_code: APP_THROTTLED, realistic };

/// Returns the response of a code; `None` when WNS has no such code.
pub(super) fn find(code: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.code == code)
}

fn realistic() -> WeightedMix {
    let row = |code, weight, per_token| WeightedRefusal { error: ServiceError::new(code), weight, per_token };
    WeightedMix {
        accept: 9650,
        errors: vec![
            row(GONE, 250, true),
            row(NOT_FOUND, 40, true),
            row(FORBIDDEN, 10, true),
            row(APP_THROTTLED, 20, false),
            row(INTERNAL_ERROR, 10, false),
            row(UNAVAILABLE, 20, false),
        ],
    }
}
