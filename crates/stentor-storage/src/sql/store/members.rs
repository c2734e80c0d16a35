//! The members of a group.

use stentor_core::group::Member;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::GROUPS_PER_MEMBER_MAX_COUNT;
use stentor_core::name::ExternalId;
use stentor_core::ports::store::{MemberAction, StoreError, SubscriptionChange};
use stentor_core::time::Timestamp;

use super::app_providers::device_of;
use super::{app_providers, owners};
use crate::sql::{Connection, Done, Portion, Row, all, int, number, one, params, readable, run, text};

const ADD_DEVICE: &str =
    "INSERT INTO group_devices (grp, device, key) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const DEVICE_GROUPS: &str = "SELECT count(*) FROM group_devices WHERE key = ?1";

/// Lists members in order, after the given one: first users by name, then devices by id.
pub(crate) fn list(
    connection: &Connection,
    group: i64,
    after: Option<&Member>,
    count: usize,
) -> Done<Vec<Member>> {
    let mut found = match after {
        Some(Member::Device(_)) => Vec::new(),
        Some(Member::User(user)) => users(connection, group, user.as_str(), count)?,
        None => users(connection, group, "", count)?,
    };
    let first = if let Some(Member::Device(device)) = after { device.raw() } else { 0 };
    let left = count - found.len();
    found.extend(devices(connection, group, first, left)?);
    Ok(found)
}

/// Adds or removes members, and counts them in the group.
pub(crate) fn change_all(
    connection: &Connection,
    app: AppId,
    group: i64,
    members: &[Member],
    action: MemberAction,
) -> Done<SubscriptionChange> {
    let mut change = SubscriptionChange::default();
    let portion = Portion::begin(connection);
    for member in members {
        let changed = match (action, member) {
            (MemberAction::Add { now, .. }, Member::User(user)) => {
                Some(add_user(connection, app, group, user, now, &portion)?)
            }
            (MemberAction::Add { .. }, Member::Device(device)) => {
                add_device(connection, app, group, *device)?
            }
            (MemberAction::Remove, Member::User(user)) => take_user(connection, app, group, user, &portion)?,
            (MemberAction::Remove, Member::Device(device)) => take_device(connection, app, group, *device)?,
        };
        change.note_member(member, changed);
    }
    // Once for all of them, and by the number of changes: existing members must not count twice.
    let sign = if action == MemberAction::Remove { -1 } else { 1 };
    count(connection, group, sign * int(change.changed))?;
    match action {
        // Checked after the new ones were added, because existing members take no new place; too many roll the transaction back.
        MemberAction::Add { max_count: Some(max_count), .. } if change.changed > 0 => {
            check_room(connection, group, max_count)?;
        }
        _ => {}
    }
    Ok(change)
}

/// Refuses a group that has more members now than it may have.
fn check_room(connection: &Connection, group: i64, max_count: usize) -> Done<()> {
    let sql = "SELECT member_count FROM groups WHERE no = ?1";
    let count = one(connection, sql, [group], |row| number(row, 0))?;
    if count.is_none_or(|count| count <= max_count as u64) {
        return Ok(());
    }
    Err(StoreError::LimitReached(format!("this group has at most {max_count} members")).into())
}

/// Removes a user from every group; the devices are updated later.
pub(crate) fn remove_user(connection: &Connection, user: i64) -> Done<()> {
    let groups = "SELECT grp FROM group_users WHERE owner = ?1";
    // Counted at once, while the devices follow in portions.
    for group in all(connection, groups, [user], |row| row.get(0))? {
        count(connection, group, -1)?;
        connection.note_following(group, user)?;
    }
    run(connection, "DELETE FROM group_users WHERE owner = ?1", [user]).map(drop)
}

/// Takes a device out of every group.
pub(crate) fn remove_device(connection: &Connection, key: i64) -> Done<()> {
    let groups = "SELECT grp FROM group_devices WHERE key = ?1";
    for group in all(connection, groups, [key], |row| row.get(0))? {
        count(connection, group, -1)?;
    }
    run(connection, "DELETE FROM group_devices WHERE key = ?1", [key]).map(drop)
}

/// Makes a device a member of all groups of another one, which leaves them.
pub(crate) fn move_all(connection: &Connection, from: i64, to: i64) -> Done<()> {
    let groups =
        all(connection, "SELECT grp FROM group_devices WHERE key = ?1", [from], |row| row.get::<i64>(0))?;
    if groups.is_empty() {
        return Ok(());
    }
    for group in groups {
        let is_new = run(connection, ADD_DEVICE, [group, int(device_of(to).raw()), to])? > 0;
        count(connection, group, if is_new { 0 } else { -1 })?;
    }
    run(connection, "DELETE FROM group_devices WHERE key = ?1", [from])?;
    check_count(connection, DEVICE_GROUPS, to)
}

fn users(connection: &Connection, group: i64, after: &str, count: usize) -> Done<Vec<Member>> {
    let sql = "SELECT external_id FROM group_users WHERE grp = ?1 AND external_id > ?2 ORDER BY external_id";
    let read = |row: &Row<'_>| text(row, 0, ExternalId::new).map(Member::User);
    Ok(readable(connection, "group_users", (sql, params![group, after]), count, read)?.0)
}

fn devices(connection: &Connection, group: i64, after: u64, count: usize) -> Done<Vec<Member>> {
    let sql = "SELECT device FROM group_devices WHERE grp = ?1 AND device > ?2 ORDER BY device";
    let read = |row: &Row<'_>| Ok(Member::Device(DeviceId::from_raw(number(row, 0)?)));
    Ok(readable(connection, "group_devices", (sql, params![group, int(after)]), count, read)?.0)
}

fn add_user(
    connection: &Connection,
    app: AppId,
    group: i64,
    user: &ExternalId,
    now: Timestamp,
    portion: &Portion<'_>,
) -> Done<bool> {
    let no = owners::ensure(connection, app, user, now)?;
    let sql = "INSERT INTO group_users (grp, external_id, owner) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let added = run(connection, sql, params![group, user.as_str(), no])? > 0;
    if added {
        // Counted with the new one: one too many undoes the transaction.
        check_count(connection, "SELECT count(*) FROM group_users WHERE owner = ?1", no)?;
        connection.begin_following(group, no, portion)?;
    }
    Ok(added)
}

fn add_device(connection: &Connection, app: AppId, group: i64, device: DeviceId) -> Done<Option<bool>> {
    let Some((_, key)) = app_providers::locate(connection, app, device)? else { return Ok(None) };
    let added = run(connection, ADD_DEVICE, [group, int(device.raw()), key])? > 0;
    if added {
        check_count(connection, DEVICE_GROUPS, key)?;
    }
    Ok(Some(added))
}

/// Refuses a member that is in too many groups now.
fn check_count(connection: &Connection, sql: &str, member: i64) -> Done<()> {
    let count = one(connection, sql, [member], |row| number(row, 0))?;
    if count.is_none_or(|count| count <= GROUPS_PER_MEMBER_MAX_COUNT as u64) {
        return Ok(());
    }
    let why = format!("a person or device is in at most {GROUPS_PER_MEMBER_MAX_COUNT} groups");
    Err(StoreError::LimitReached(why).into())
}

fn take_user(
    connection: &Connection,
    app: AppId,
    group: i64,
    user: &ExternalId,
    portion: &Portion<'_>,
) -> Done<Option<bool>> {
    let Some((no, _)) = owners::find(connection, app, user)? else { return Ok(None) };
    let sql = "DELETE FROM group_users WHERE grp = ?1 AND external_id = ?2";
    let removed = run(connection, sql, params![group, user.as_str()])? > 0;
    if removed {
        connection.begin_following(group, no, portion)?;
    }
    Ok(Some(removed))
}

fn take_device(connection: &Connection, app: AppId, group: i64, device: DeviceId) -> Done<Option<bool>> {
    if app_providers::locate(connection, app, device)?.is_none() {
        return Ok(None);
    }
    let sql = "DELETE FROM group_devices WHERE grp = ?1 AND device = ?2";
    Ok(Some(run(connection, sql, [group, int(device.raw())])? > 0))
}

fn count(connection: &Connection, group: i64, change: i64) -> Done<()> {
    run(connection, "UPDATE groups SET member_count = member_count + ?2 WHERE no = ?1", [group, change])
        .map(drop)
}
