//! The webhook of an app: each message is one POST, signed according to Standard Webhooks (standardwebhooks.com).

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode, Url, header};
use stentor_core::id::UpstreamId;
use stentor_core::time::Timestamp;
use stentor_core::upstream::UpstreamWebhook;
use stentor_providers::Outbound;

use super::handover::HandoverRefusal;
use crate::service::webhook_key;

/// Most bytes of a response that are read, so that its connection can be reused. Their content is ignored.
const REPLY_MAX_BYTES: usize = 16_384;
/// Longest wait that a webhook may request.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// The receiver of one app's messages.
pub(super) struct Webhook {
    client: reqwest::Client,
    url: Url,
    keys: SigningKeys,
    outbound: Outbound,
}

/// The keys that sign requests.
struct SigningKeys {
    key: hmac::Key,
    /// The former key, which also signs requests until the given time.
    former: Option<(hmac::Key, Timestamp)>,
}

impl Webhook {
    /// Creates a client without connecting. An error is a sentence without the address.
    pub(super) fn new(
        webhook: &UpstreamWebhook,
        outbound: &Outbound,
        timeout: Duration,
    ) -> Result<Self, String> {
        let url = Url::parse(&webhook.url).map_err(|_| "its address cannot be read")?;
        let keys = SigningKeys::of(webhook).ok_or("its secret cannot be read")?;
        // Without proxies and redirects, because the policy must check each address.
        let client = reqwest::Client::builder()
            .timeout(timeout)
            .redirect(Policy::none())
            .no_proxy()
            .user_agent("stentor")
            .dns_resolver(Arc::new(outbound.clone()))
            .build()
            .map_err(|error| failure_of(&error))?;
        Ok(Self { client, url, keys, outbound: outbound.clone() })
    }

    /// Posts a message. It is handed over if the webhook answers with 2xx in time.
    pub(super) async fn post(
        &self,
        id: UpstreamId,
        body: String,
        now: Timestamp,
    ) -> Result<(), HandoverRefusal> {
        // An IP address is never resolved, and the policy may have changed since the webhook was put.
        let host = self.url.host_str().unwrap_or_default();
        self.outbound.check_host(host).map_err(|refused| HandoverRefusal::new(refused.to_string()))?;
        let id = id.to_string();
        let signatures = self.keys.sign(&id, now, &body);
        let request = self
            .client
            .post(self.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds(now).to_string())
            .header("webhook-signature", signatures)
            .body(body);
        let response = request.send().await.map_err(|error| HandoverRefusal::new(failure_of(&error)))?;
        judge(response).await
    }
}

impl SigningKeys {
    /// Decodes the secrets of a webhook.
    fn of(webhook: &UpstreamWebhook) -> Option<Self> {
        let key = |secret: &str| Some(hmac::Key::new(hmac::HMAC_SHA256, &webhook_key(secret)?));
        let former = webhook.former.as_ref();
        let former = former.and_then(|former| Some((key(&former.secret)?, former.until)));
        Some(Self { key: key(&webhook.secret)?, former })
    }

    /// Signs a message's id, the time in seconds and the body with each valid secret, the newest first. A receiver accepts a request if one
    /// signature matches.
    fn sign(&self, id: &str, now: Timestamp, body: &str) -> String {
        let former = self.former.as_ref().filter(|(_, until)| now < *until).map(|(key, _)| key);
        let signed = format!("{id}.{}.{body}", seconds(now));
        let signature = |key: &hmac::Key| {
            let tag = hmac::sign(key, signed.as_bytes());
            format!("v1,{}", STANDARD.encode(tag))
        };
        let signatures = Some(&self.key).into_iter().chain(former).map(signature);
        signatures.collect::<Vec<_>>().join(" ")
    }
}

const fn seconds(now: Timestamp) -> i64 {
    now.as_millis() / 1_000
}

/// Evaluates a response: its status, and the requested wait.
async fn judge(mut response: Response) -> Result<(), HandoverRefusal> {
    let status = response.status();
    let retry_after =
        response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let mut left = REPLY_MAX_BYTES;
    while let Ok(Some(piece)) = response.chunk().await {
        match left.checked_sub(piece.len()) {
            Some(rest) => left = rest,
            None => break,
        }
    }
    if status.is_success() {
        return Ok(());
    }
    let more = if status.is_redirection() { ", and redirects are not followed" } else { "" };
    let refusal = HandoverRefusal::new(format!("the webhook answered {}{more}", status.as_u16()));
    let waits = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let retry_after = retry_after.filter(|_| waits).map(Duration::from_secs);
    Err(HandoverRefusal { retry_after: retry_after.map(|wait| wait.min(RETRY_AFTER_MAX)), ..refusal })
}

/// Describes an error without the address, a part of which may be a secret.
fn failure_of(error: &reqwest::Error) -> String {
    let what = match error {
        error if error.is_timeout() => "the webhook did not answer in time",
        error if error.is_connect() => "the webhook cannot be reached",
        _ => "the request to the webhook failed",
    };
    let mut deepest: Option<&dyn Error> = error.source();
    while let Some(below) = deepest.and_then(Error::source) {
        deepest = Some(below);
    }
    deepest.map_or_else(|| what.to_owned(), |cause| format!("{what}: {cause}"))
}

#[cfg(test)]
mod tests {
    use stentor_core::id::AppId;
    use stentor_core::upstream::FormerSecret;

    use super::*;

    /// The example of the specification's reference libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn signed(secret: &str, former: Option<FormerSecret>, now: Timestamp) -> String {
        let (app, url, secret) = (AppId::from_raw(1), String::new(), secret.to_owned());
        let webhook = UpstreamWebhook { app, url, secret, updated_at: now, former };
        let keys = SigningKeys::of(&webhook).expect("secrets");
        keys.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", now, r#"{"test": 2432232314}"#)
    }

    #[test]
    fn a_signature_is_that_of_the_reference_libraries() {
        assert_eq!(signed(SECRET, None, Timestamp::from_millis(1_614_265_330_999)), SIGNED);
    }

    #[test]
    fn a_former_secret_signs_after_the_new_one_until_its_time_is_over() {
        let now = Timestamp::from_millis(1_614_265_330_000);
        let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
        let former = |until| Some(FormerSecret { secret: SECRET.to_owned(), until });
        let both = signed(other, former(now.plus(Duration::from_millis(1))), now);
        let alone = signed(other, former(now), now);
        assert_eq!(both, format!("{alone} {SIGNED}"));
        assert_ne!(alone, SIGNED);
    }
}
