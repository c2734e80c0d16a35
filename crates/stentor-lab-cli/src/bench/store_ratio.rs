//! Ratios of the costs of a store to those of SQLite in the same run.

use serde_json::{Value, json};

/// Returns the value of SQLite for each field, and the ratio of the other store's value to it.
pub(super) fn beside_file(fields: &[&str], file: &Value, other: &Value) -> Value {
    let mut object = json!({});
    for field in fields {
        let (theirs, ours) = (file[field].as_f64(), other[field].as_f64());
        let ratio = ours.zip(theirs).filter(|(_, theirs)| *theirs > 0.0).map(|(ours, theirs)| ours / theirs);
        object[field] = json!({"sqlite": theirs, "ratio": ratio});
    }
    object
}
