//! Tags of devices: in the device's row, and in the table of devices by tag.

use crate::sql::{Connection, Done, int, params, run};
use stentor_core::id::AppId;
use stentor_core::name::Tag;

/// Encodes tags for the device's row.
pub(crate) fn join_tags(tags: &[Tag]) -> Option<String> {
    let names: Vec<_> = tags.iter().map(Tag::as_str).collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// Updates the table of devices by tag.
pub(crate) fn change_tags(
    connection: &Connection,
    app: AppId,
    key: i64,
    from: Option<&str>,
    to: Option<&str>,
) -> Done<()> {
    if from == to {
        return Ok(());
    }
    for tag in split_tags(from) {
        let sql = "DELETE FROM device_tags WHERE app = ?1 AND tag = ?2 AND key = ?3";
        run(connection, sql, params![int(app.raw()), tag, key])?;
    }
    for tag in split_tags(to) {
        let sql = "INSERT INTO device_tags (app, tag, key) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        run(connection, sql, params![int(app.raw()), tag, key])?;
    }
    Ok(())
}

/// Decodes tags of the device's row.
pub(crate) fn split_tags(tags: Option<&str>) -> impl Iterator<Item = &str> {
    tags.into_iter().flat_map(|tags| tags.split(','))
}
