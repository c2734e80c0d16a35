//! Null in the APIs of other servers. It means absence there, as in Go and in the JSON of Protocol Buffers.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::contract::ServiceResult;
use crate::decode::{decode, decode_value};

/// Fields passed to devices unchanged; a null in them belongs to the app.
const FREE: &[&str] = &["payload"];

/// Decodes a JSON object and drops nulls; a problem names the field.
pub(super) fn decode_without_nulls<T: DeserializeOwned>(bytes: &[u8]) -> ServiceResult<T> {
    value_without_nulls(decode(bytes)?)
}

/// Converts an already decoded record and drops nulls.
pub(super) fn value_without_nulls<T: DeserializeOwned>(mut record: Map<String, Value>) -> ServiceResult<T> {
    drop_nulls(&mut record);
    decode_value(record)
}

/// Removes nulls at any depth, except in fields that devices receive unchanged.
pub(super) fn drop_nulls(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| !value.is_null());
    let given = fields.iter_mut().filter(|(name, _)| !FREE.contains(&name.as_str()));
    given.for_each(|(_, value)| drop_inner(value));
}

fn drop_inner(value: &mut Value) {
    match value {
        Value::Object(fields) => drop_nulls(fields),
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            values.retain(|value| !value.is_null());
            values.iter_mut().for_each(drop_inner);
        }
        // Results follow the order of such a list, so that a null in it becomes an empty text, as in Go.
        Value::Array(values) => {
            values.iter_mut().filter(|value| value.is_null()).for_each(|value| *value = "".into());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_absent_at_any_depth_but_in_what_a_device_gets_as_it_is() {
        let mut given = json!({
            "data": null, "notification": {"title": "t", "sound": null}, "tokens": ["a", null],
            "notifications": [null, {"data": {"k": null}}], "apns": {"payload": {"own": null}, "headers": null},
        });
        drop_nulls(given.as_object_mut().expect("an object"));
        let expected = json!({
            "notification": {"title": "t"}, "tokens": ["a", ""], "notifications": [{"data": {}}],
            "apns": {"payload": {"own": null}},
        });
        assert_eq!(given, expected);
    }
}
