//! What a store costs as a share of what the server's file costs in the same run.

use serde_json::{Value, json};

/// Returns for each of some numbers of two objects what the file's run has, and the other's share of it.
pub(super) fn beside_file(fields: &[&str], file: &Value, other: &Value) -> Value {
    let mut object = json!({});
    for field in fields {
        let (theirs, ours) = (file[field].as_f64(), other[field].as_f64());
        let ratio = ours.zip(theirs).filter(|(_, theirs)| *theirs > 0.0).map(|(ours, theirs)| ours / theirs);
        object[field] = json!({"sqlite": theirs, "ratio": ratio});
    }
    object
}
