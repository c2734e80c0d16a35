//! Credentials of Web Push: the key by which push services know the sender (RFC 8292).

use reqwest::Url;
use serde_json::{Map, Value};
use stentor_core::ports::provider::CredentialError;
use stentor_http2::Roots;

use super::vapid::VapidKeyPair;
use crate::credential::{self, Fields};

const FIELDS: &[&str] = &[
    "subject",
    "private_key",
    "public_key",
    "previous_private_key",
    "previous_public_key",
    "navigate",
    "ca_pem",
];
const KEY_PROBLEM: &str = "must be a P-256 key: 32 bytes in base64url, or PEM";

/// The parsed credential.
pub struct WebPushCredential {
    /// The key with which tokens are signed.
    pub(super) key: VapidKeyPair,
    /// The key before it, for subscriptions that were made with that one.
    pub(super) previous: Option<VapidKeyPair>,
    /// The address of the sender's operator, which each token names.
    pub(super) subject: String,
    /// The address that a notification opens if its message names none.
    pub(super) navigate: Option<String>,
    /// Trusted certificates of push services.
    pub(super) roots: Roots,
}

impl WebPushCredential {
    /// Parses a credential's JSON.
    pub fn parse(secret: &str) -> Result<Self, CredentialError> {
        let map = credential::parse(secret)?;
        let fields = Fields::new(&map, "");
        fields.only(FIELDS)?;
        let key = |name: &str| match fields.optional(name)? {
            Some(text) => {
                VapidKeyPair::read(text).map(Some).ok_or_else(|| fields.unusable(name, KEY_PROBLEM))
            }
            None => Ok(None),
        };
        let subject = fields.text("subject")?;
        if !is_subject(subject) {
            return Err(fields
                .invalid("subject", "must be mailto: and an address, or an https: URL, of a public host"));
        }
        let roots = fields.roots()?;
        let navigate = fields.optional("navigate")?;
        if navigate.is_some_and(|address| !is_web_address(address)) {
            return Err(fields.invalid("navigate", "must be an http: or https: URL"));
        }
        Ok(Self {
            key: key("private_key")?.ok_or_else(|| fields.invalid("private_key", "is missing"))?,
            previous: key("previous_private_key")?,
            subject: subject.to_owned(),
            navigate: navigate.map(ToOwned::to_owned),
            roots,
        })
    }
}

/// Returns true if every push service takes a text as `sub`. Apple refuses an address at `localhost`.
fn is_subject(text: &str) -> bool {
    let host = match (text.strip_prefix("mailto:"), text.strip_prefix("https://")) {
        (Some(address), _) => address.rsplit_once('@').map_or("", |(_, host)| host),
        (_, Some(rest)) => rest.split('/').next().unwrap_or_default(),
        _ => "",
    };
    let is_clean = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_clean && host.contains('.') && !host.ends_with(".localhost")
}

fn is_web_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
}

/// Completes the fields of a new credential from those of the one before: without a key it keeps the former one, or gets a new one. The
/// former key is kept when another one takes its place, because subscriptions made with it stay valid.
pub(super) fn complete(
    mut fields: Map<String, Value>,
    before: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, CredentialError> {
    let rotates = fields.remove("rotate") == Some(Value::Bool(true));
    let former = before.and_then(|before| Some(before.get("private_key")?.as_str()?.to_owned()));
    let given = fields.get("private_key").and_then(Value::as_str).map(ToOwned::to_owned);
    if rotates && given.is_some() {
        return Err(credential::invalid("rotate", "excludes `private_key`"));
    }
    let kept = given.or_else(|| former.clone().filter(|_| !rotates));
    let key = match kept {
        Some(key) => key,
        None => VapidKeyPair::generate().ok_or_else(|| {
            credential::unusable("private_key", "cannot be generated: the system has no randomness")
        })?,
    };
    let public = |name: &str, key: &str| {
        let pair = VapidKeyPair::read(key).ok_or_else(|| credential::unusable(name, KEY_PROBLEM))?;
        Ok(pair.public().to_owned())
    };
    let own = public("private_key", &key)?;
    let is_other = |former: &String| public("private_key", former).is_ok_and(|former| former != own);
    let previous = former.filter(is_other).or_else(|| {
        let text = |map: &Map<String, Value>| Some(map.get("previous_private_key")?.as_str()?.to_owned());
        text(&fields).or_else(|| text(before?))
    });
    if let Some(previous) = previous {
        fields.insert("previous_public_key".into(), public("previous_private_key", &previous)?.into());
        fields.insert("previous_private_key".into(), previous.into());
    }
    fields.insert("public_key".into(), own.into());
    fields.insert("private_key".into(), key.into());
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn parsed(fields: &Map<String, Value>) -> Result<WebPushCredential, CredentialError> {
        WebPushCredential::parse(&Value::Object(fields.clone()).to_string())
    }

    #[test]
    fn a_key_is_made_kept_rotated_and_imported() {
        let plain = object(&json!({"subject": "mailto:ops@app.example"}));
        let made = complete(plain.clone(), None).expect("made");
        assert_eq!(parsed(&made).expect("a credential").key.public(), made["public_key"]);
        assert_eq!(complete(plain.clone(), Some(&made)).expect("kept"), made);
        let mut rotate = plain.clone();
        rotate.insert("rotate".into(), true.into());
        let rotated = complete(rotate, Some(&made)).expect("rotated");
        assert_ne!(rotated["public_key"], made["public_key"]);
        let previous = parsed(&rotated).expect("a credential").previous.expect("the former key");
        assert_eq!(previous.public(), made["public_key"]);
        assert_eq!(complete(plain.clone(), Some(&rotated)).expect("kept"), rotated, "with its former one");
        let mut imported = plain;
        imported.insert("private_key".into(), made["private_key"].clone());
        let imported = complete(imported, Some(&rotated)).expect("imported");
        assert_eq!(imported["public_key"], made["public_key"]);
        assert_eq!(imported["previous_public_key"], rotated["public_key"]);
    }

    #[test]
    fn a_field_that_push_services_would_refuse_is_named() {
        let made = complete(object(&json!({"subject": "mailto:ops@app.example"})), None).expect("made");
        let refused = |name: &str, value: Value| {
            let mut fields = made.clone();
            fields.insert(name.to_owned(), value);
            parsed(&fields).err().expect("refused").into_invalid().field
        };
        for subject in
            ["ops@app.example", "mailto:ops@localhost", "mailto:", "http://app.example", "https://a b.c", ""]
        {
            assert_eq!(refused("subject", subject.into()), "subject", "{subject}");
        }
        assert_eq!(refused("private_key", "AAAA".into()), "private_key");
        assert_eq!(refused("previous_private_key", "AAAA".into()), "previous_private_key");
        assert_eq!(refused("key", "x".into()), "key");
        for subject in ["https://app.example/contact", "mailto:a@b.example"] {
            let mut fields = made.clone();
            fields.insert("subject".into(), subject.into());
            assert!(parsed(&fields).is_ok(), "{subject}");
        }
        let both =
            object(&json!({"subject": "mailto:a@b.c", "private_key": made["private_key"], "rotate": true}));
        assert_eq!(complete(both, None).expect_err("refused").into_invalid().field, "rotate");
    }
}
