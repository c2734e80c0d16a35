//! Subscriptions of Web Push as push tokens.
//!
//! A device of Web Push is a subscription: an endpoint, a public key and a secret (W3C Push API, `PushSubscription`). Its push token is one
//! text, `https://push.example/abc#p256dh=…&auth=…`. An app may also register the JSON that `JSON.stringify(subscription)` gives.

use reqwest::Url;
use serde::Deserialize;
use stentor_wire::web_push::PushKeys;

const KEY_MARK: &str = "#p256dh=";
const SECRET_MARK: &str = "&auth=";
/// Hosts of this machine, to which a push service in trials may be reached without TLS.
const LOCAL_HOSTS: &[&str] = &["localhost", "127.0.0.1", "[::1]"];

/// The parts of a token in its canonical spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subscription<'a> {
    /// Scheme, host and port of the push service.
    pub(crate) origin: &'a str,
    /// Path and query of the endpoint.
    pub(crate) path: &'a str,
    p256dh: &'a str,
    auth: &'a str,
}

impl<'a> Subscription<'a> {
    /// Splits a token; `None` if it is not in its canonical spelling.
    pub(crate) fn of(token: &'a str) -> Option<Self> {
        let (endpoint, keys) = token.split_once(KEY_MARK)?;
        let (p256dh, auth) = keys.split_once(SECRET_MARK)?;
        let scheme = endpoint.find("://")? + "://".len();
        let path = scheme + endpoint[scheme..].find('/')?;
        let (origin, path) = endpoint.split_at(path);
        Some(Self { origin, path, p256dh, auth })
    }

    /// Decodes the keys; `None` if they are malformed.
    pub(crate) fn keys(&self) -> Option<PushKeys> {
        PushKeys::read(self.p256dh, self.auth)
    }
}

/// A subscription as browsers write it.
#[derive(Deserialize)]
struct SubscriptionJson {
    endpoint: String,
    keys: SubscriptionKeys,
}

#[derive(Deserialize)]
struct SubscriptionKeys {
    p256dh: String,
    auth: String,
}

/// Returns the canonical spelling of a subscription, given as a token or as JSON; `None` if it is neither.
pub(crate) fn canonical(text: &str) -> Option<String> {
    if text.starts_with('{') {
        let SubscriptionJson { endpoint, keys } = serde_json::from_str(text).ok()?;
        return spelled(&endpoint, &keys.p256dh, &keys.auth);
    }
    let (endpoint, keys) = text.split_once(KEY_MARK)?;
    let (p256dh, auth) = keys.split_once(SECRET_MARK)?;
    spelled(endpoint, p256dh, auth)
}

fn spelled(endpoint: &str, p256dh: &str, auth: &str) -> Option<String> {
    let url = Url::parse(endpoint).ok().filter(is_endpoint)?;
    let (p256dh, auth) = PushKeys::read(&url_safe(p256dh), &url_safe(auth))?.texts();
    Some(format!("{url}{KEY_MARK}{p256dh}{SECRET_MARK}{auth}"))
}

/// Returns true if a URL can be an endpoint: over TLS (RFC 8030, 8.1), or of this machine.
fn is_endpoint(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && LOCAL_HOSTS.contains(&host));
    let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    is_safe && is_plain && !host.is_empty()
}

/// Replaces the letters of the other alphabet of base64, which some libraries write.
fn url_safe(text: &str) -> String {
    text.chars()
        .map(|letter| {
            if letter == '+' {
                '-'
            } else if letter == '/' {
                '_'
            } else {
                letter
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const P256DH: &str =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

    fn token(endpoint: &str) -> String {
        format!("{endpoint}#p256dh={P256DH}&auth={AUTH}")
    }

    #[test]
    fn a_subscription_as_a_browser_writes_it_is_one_token_whatever_the_spelling_of_its_keys() {
        let expected = token("https://push.example/wpush/v2/abc");
        let other = P256DH.replace('-', "+").replace('_', "/");
        for (p256dh, auth) in
            [(P256DH, AUTH), (&*format!("{P256DH}="), "BTBZMqHH6r4Tts7J/aSIgg=="), (&*other, AUTH)]
        {
            let json = format!(
                r#"{{"endpoint":"https://Push.example:443/wpush/v2/abc","expirationTime":null,"keys":{{"p256dh":"{p256dh}","auth":"{auth}"}}}}"#
            );
            assert_eq!(canonical(&json).as_deref(), Some(&*expected), "{json}");
        }
        assert_eq!(canonical(&expected).as_deref(), Some(&*expected));
    }

    #[test]
    fn a_token_leads_to_its_push_service_its_path_and_its_keys() {
        let token = token("https://push.example:8443/wpush/v2/abc?a=b");
        let subscription = Subscription::of(&token).expect("a subscription");
        assert_eq!(subscription.origin, "https://push.example:8443");
        assert_eq!(subscription.path, "/wpush/v2/abc?a=b");
        assert_eq!(subscription.keys().expect("keys").texts(), (P256DH.to_owned(), AUTH.to_owned()));
    }

    #[test]
    fn what_is_no_subscription_is_no_token() {
        for text in [
            "",
            "{}",
            "{\"endpoint\":\"https://push.example/a\"}",
            "cJ4vGd1wRk2:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx",
            "https://push.example/a",
            &token("http://push.example/a"),
            &token("ftp://push.example/a"),
            &token("https://me@push.example/a"),
            &token("https://me:hush@push.example/a"),
            &token("https://push.example/a#b"),
            &format!("https://push.example/a#p256dh=AAAA&auth={AUTH}"),
            &format!("https://push.example/a#p256dh={P256DH}&auth=AAAA"),
        ] {
            assert_eq!(canonical(text), None, "{text}");
        }
        assert!(canonical(&token("http://127.0.0.1:8080/a")).is_some());
    }
}
