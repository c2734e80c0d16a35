//! Decryption of messages that were encrypted for this machine.

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::memory::KeysRecord;

/// Returns a message decrypted; an unencrypted message is returned unchanged.
pub(crate) fn opened(message: &Value, keys: Option<&KeysRecord>) -> anyhow::Result<Value> {
    let sealed = &message["sealed"];
    if sealed.is_null() {
        return Ok(message.clone());
    }
    let body = sealed["body"].as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
    let body = body.context("a sealed message has no body")?;
    let text = keys.context("this device has no keys")?.pair()?.open(&body)?;
    if sealed["by"] == "server" {
        return serde_json::from_slice(&text).context("a sealed message is no JSON");
    }
    // The content is the sender's: a text in most cases.
    let mut opened = message.clone();
    opened["data"] = match String::from_utf8(text) {
        Ok(text) => json!({"body": text}),
        Err(bytes) => json!({"body_base64": BASE64_STANDARD.encode(bytes.into_bytes())}),
    };
    if let Some(fields) = opened.as_object_mut() {
        fields.remove("sealed");
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use stentor_wire::web_push::seal;

    use super::*;

    fn sealed(keys: &KeysRecord, text: &[u8], by: &str) -> Value {
        let keys = keys.pair().expect("keys").public().expect("keys");
        let body = BASE64_STANDARD.encode(seal(text, &keys).expect("sealed"));
        json!({"id": "msg_1", "sealed": {"encoding": "aes128gcm", "body": body, "by": by}})
    }

    #[test]
    fn a_message_comes_out_as_it_went_in() {
        let keys = KeysRecord::generate().expect("keys");
        let inside = json!({"id": "msg_1", "data": {"k": "v"}});
        let message = sealed(&keys, inside.to_string().as_bytes(), "server");
        assert_eq!(opened(&message, Some(&keys)).expect("opened"), inside);
        assert_eq!(opened(&inside, Some(&keys)).expect("nobody sealed it"), inside);
    }

    #[test]
    fn what_a_sender_sealed_is_text_or_bytes() {
        let keys = KeysRecord::generate().expect("keys");
        let text = opened(&sealed(&keys, b"hello", "sender"), Some(&keys)).expect("opened");
        assert_eq!(text, json!({"id": "msg_1", "data": {"body": "hello"}}));
        let bytes = opened(&sealed(&keys, &[255], "sender"), Some(&keys)).expect("opened");
        assert_eq!(bytes, json!({"id": "msg_1", "data": {"body_base64": "/w=="}}));
    }

    #[test]
    fn without_its_keys_nothing_is_opened() {
        let keys = KeysRecord::generate().expect("keys");
        let message = sealed(&keys, b"{}", "server");
        assert!(opened(&message, None).is_err());
        assert!(opened(&message, Some(&KeysRecord::generate().expect("others"))).is_err());
    }
}
