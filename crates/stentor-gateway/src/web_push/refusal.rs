//! Refusals of senders' requests: statuses, numbers and titles as documented by autopush (its docs, errors.md).

use serde_json::json;

/// The reason for which a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushRefusal {
    /// Encryption keys are missing.
    NoCryptoKeys(&'static str),
    /// Encryption keys are invalid.
    WrongCryptoKeys(&'static str),
    /// A header is missing.
    NoHeader(&'static str),
    /// The header TTL is invalid.
    WrongTtl,
    /// The header Topic is invalid.
    WrongTopic,
    /// The sender is not authenticated.
    Unauthorized(&'static str),
    /// The URL does not exist.
    NoSuchUrl,
    /// The URL does not support the method.
    WrongMethod,
    /// The subscription has ended.
    Gone,
    /// The body is too large.
    TooLarge,
    /// Too many messages to one device; with the seconds until a retry.
    TooMany(u32),
    /// The message was not stored; with the seconds until a retry.
    Unavailable(u32),
    /// The server failed.
    Internal,
}

impl PushRefusal {
    /// Returns the HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::NoCryptoKeys(_)
            | Self::WrongCryptoKeys(_)
            | Self::NoHeader(_)
            | Self::WrongTtl
            | Self::WrongTopic => 400,
            Self::Unauthorized(_) => 401,
            Self::NoSuchUrl => 404,
            Self::WrongMethod => 405,
            Self::Gone => 410,
            Self::TooLarge => 413,
            Self::TooMany(_) => 429,
            Self::Internal => 500,
            Self::Unavailable(_) => 503,
        }
    }

    /// Returns autopush's number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        match self {
            Self::NoCryptoKeys(_) => 101,
            Self::NoSuchUrl | Self::WrongMethod => 102,
            Self::TooLarge => 104,
            Self::Gone => 106,
            Self::Unauthorized(_) => 109,
            Self::WrongCryptoKeys(_) => 110,
            Self::NoHeader(_) => 111,
            Self::WrongTtl => 112,
            Self::WrongTopic => 113,
            Self::TooMany(_) | Self::Unavailable(_) => 201,
            Self::Internal => 999,
        }
    }

    /// Returns the seconds until a retry.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> Option<u32> {
        match self {
            Self::TooMany(seconds) | Self::Unavailable(seconds) => Some(*seconds),
            _ => None,
        }
    }

    /// Writes the body of the refusal, as JSON.
    #[must_use]
    pub fn body(&self) -> String {
        let (code, errno, error) = (self.status(), self.number(), self.title());
        json!({"code": code, "errno": errno, "error": error, "message": self.message()}).to_string()
    }

    const fn title(&self) -> &'static str {
        match self.status() {
            400 => "Bad Request",
            401 => "Unauthorized",
            404 => "Not Found",
            405 => "Method Not Allowed",
            410 => "Gone",
            413 => "Payload Too Large",
            429 => "Too Many Requests",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        }
    }

    const fn message(&self) -> &'static str {
        match self {
            Self::NoCryptoKeys(why)
            | Self::WrongCryptoKeys(why)
            | Self::NoHeader(why)
            | Self::Unauthorized(why) => why,
            Self::WrongTtl => "the header TTL must be a number of seconds, from 0",
            Self::WrongTopic => "the header Topic must be 1 to 32 letters of base64url",
            Self::NoSuchUrl => "there is no such URL",
            Self::WrongMethod => "the URL knows other methods",
            Self::Gone => "the subscription is over: send to it no more",
            Self::TooLarge => "the body may have at most 4096 bytes",
            Self::TooMany(_) => "too many messages to this subscription: come back after Retry-After",
            Self::Unavailable(_) => "nothing was kept: come back after Retry-After",
            Self::Internal => "the server failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_written_as_autopush_does() {
        let body: serde_json::Value = serde_json::from_str(&PushRefusal::WrongTtl.body()).expect("JSON");
        assert_eq!(
            (&body["code"], &body["errno"], &body["error"]),
            (&json!(400), &json!(112), &json!("Bad Request"))
        );
        assert!(body["message"].as_str().is_some_and(|text| text.contains("TTL")));
        assert_eq!(PushRefusal::TooMany(7).retry_after_seconds(), Some(7));
    }
}
