//! The list of devices.

use stentor_core::device::{Device, DeviceState, TokenForm};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ports::store::{DeviceFilter, Page, TokenKind};

use super::app_providers::{self, AppProvider};
use super::devices::{device, select};
use super::owners;
use crate::postgres::engine::Connection;
use crate::sql::{Done, Row, Value, int, readable};

/// Lists devices in order of id: the first of each fleet, of which the first of all are taken.
pub(super) fn list(
    connection: &Connection,
    app: AppId,
    filter: &DeviceFilter,
    page: Page,
) -> Done<Vec<Device>> {
    app_providers::check_app(connection, app)?;
    let user = match &filter.user {
        None => None,
        Some(user) => match owners::find(connection, app, user)? {
            Some((no, _)) => Some(no),
            None => return Ok(Vec::new()),
        },
    };
    let mut found = Vec::new();
    for fleet in app_providers::of_app(connection, app)? {
        if filter.provider.is_none_or(|provider| provider == fleet.provider) {
            let (sql, values) = query(fleet, user, filter, page);
            let read = |row: &Row<'_>| device(row, fleet);
            found.extend(readable(connection, "devices", (&sql, values), page.limit, read)?.0);
        }
    }
    found.sort_by_key(|device| device.id);
    found.truncate(page.limit);
    Ok(found)
}

/// Returns a statement over the shortest list that holds all that are meant, with its values.
fn query(
    fleet: AppProvider,
    user: Option<i64>,
    filter: &DeviceFilter,
    page: Page,
) -> (String, Vec<Value<'_>>) {
    let bound = |id| fleet.bound(DeviceId::from_raw(id));
    let mut values = vec![Value::from(bound(page.after)), Value::from(bound(u64::MAX))];
    let mut conditions = String::new();
    if let Some(user) = user {
        values.push(user.into());
        conditions +=
            " AND d.key IN (SELECT key FROM user_devices WHERE owner = $3 AND key > $1 AND key <= $2)";
    }
    if let Some(tag) = &filter.tag {
        values.extend([int(fleet.app.raw()).into(), tag.as_str().into()]);
        let (app, tag) = (values.len() - 1, values.len());
        conditions += &format!(
            " AND d.key IN (SELECT key FROM device_tags WHERE app = ${app} AND tag = ${tag} AND key > $1 AND key <= $2)"
        );
    }
    if let Some(TokenKind { form, has_it }) = filter.kind {
        values.push(pattern(form).into());
        let operator = if has_it { "~" } else { "!~" };
        conditions += &format!(" AND d.token {operator} ${}", values.len());
    }
    let (select, state) = (select(fleet.provider), condition(filter.state));
    (format!("{select} WHERE d.key > $1 AND d.key <= $2 AND {state}{conditions} ORDER BY d.key"), values)
}

/// Returns the regular expression of a form.
fn pattern(TokenForm { first, rest_count }: TokenForm) -> String {
    format!("^[{first}][A-Za-z0-9_-]{{{rest_count}}}$")
}

/// Returns the condition for devices in a state.
fn condition(state: Option<DeviceState>) -> &'static str {
    match state {
        None => "d.listed",
        Some(DeviceState::Active) => "d.listed AND d.retired_at IS NULL",
        Some(DeviceState::Retired) => "d.retired_at IS NOT NULL",
        Some(DeviceState::Unlisted) => "NOT d.listed AND d.retired_at IS NULL",
    }
}
