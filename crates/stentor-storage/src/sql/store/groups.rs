//! Groups and their members.

use async_trait::async_trait;
use stentor_core::group::{Group, Member};
use stentor_core::id::AppId;
use stentor_core::name::GroupName;
use stentor_core::ports::store::{GroupStore, MemberAction, Precondition, StoreError, SubscriptionChange};
use stentor_core::time::Timestamp;

use super::{app_providers, members};
use crate::sql::{
    Connection, Done, EngineParts, Portion, RemovedKind, Row, SqlEngine, SqlStore, int, missing, number, one,
    params, readable, run, text, time, unless_missing,
};

#[async_trait]
impl<E: SqlEngine> GroupStore for SqlStore<E> {
    async fn put_group(
        &self,
        app: AppId,
        group: &GroupName,
        now: Timestamp,
        precondition: &Precondition<Group>,
    ) -> Result<Group, StoreError> {
        let (group, precondition) = (group.clone(), precondition.clone());
        self.write_registry(move |connection| {
            app_providers::check_app(connection, app)?;
            precondition.check(|| unless_missing(show(connection, app, &group)))?;
            let sql =
                "INSERT INTO groups (app, name, created_at, member_count) VALUES (?1, ?2, ?3, 0) ON CONFLICT DO NOTHING";
            run(connection, sql, params![int(app.raw()), group.as_str(), now.as_millis()])?;
            show(connection, app, &group)
        })
        .await
    }

    async fn group(&self, app: AppId, group: &GroupName) -> Result<Group, StoreError> {
        let group = group.clone();
        self.read(move |connection| show(connection, app, &group)).await
    }

    async fn groups(
        &self,
        app: AppId,
        after: Option<&GroupName>,
        count: usize,
    ) -> Result<Vec<Group>, StoreError> {
        let after = after.map_or(String::new(), |name| name.as_str().to_owned());
        self.read(move |connection| {
            let sql = "SELECT name, created_at, member_count FROM groups
                WHERE app = ?1 AND name > ?2 ORDER BY name";
            let rows = (sql, params![int(app.raw()), &after]);
            Ok(readable(connection, "groups", rows, count, |row| read(row, app))?.0)
        })
        .await
    }

    async fn members(
        &self,
        app: AppId,
        group: &GroupName,
        after: Option<&Member>,
        count: usize,
    ) -> Result<Vec<Member>, StoreError> {
        let (group, after) = (group.clone(), after.cloned());
        self.read(move |connection| {
            let no = find(connection, app, &group)?;
            members::list(connection, no, after.as_ref(), count)
        })
        .await
    }

    async fn change_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
        action: MemberAction,
    ) -> Result<SubscriptionChange, StoreError> {
        let (group, members) = (group.clone(), members.to_vec());
        let change = self.write_registry(move |connection| {
            let no = find(connection, app, &group)?;
            let change = members::change_all(connection, app, no, &members, action)?;
            Ok((change, connection.is_following(no)?.then_some(no)))
        });
        let (change, followed) = change.await?;
        self.follow(followed).await;
        Ok(change)
    }
}

impl<E: SqlEngine> SqlStore<E> {
    /// Updates the devices of users that joined or left a group before the reply is sent. If this fails, they are updated later.
    async fn follow(&self, group: Option<i64>) {
        let Some(group) = group else { return };
        while let Ok(true) = self.write_registry(move |connection| connection.follow(group)).await {}
    }
}

/// Removes a group of which the precondition holds.
pub(crate) fn remove(
    connection: &Connection,
    app: AppId,
    group: &GroupName,
    precondition: &Precondition<Group>,
) -> Done<()> {
    precondition.check(|| show(connection, app, group).map(Some))?;
    let no = find(connection, app, group)?;
    run(connection, "DELETE FROM groups WHERE no = ?1", [no])?;
    connection.begin_removal(RemovedKind::Group, no, &Portion::begin(connection))
}

/// Finds a group's number, or fails if it does not exist.
pub(crate) fn find(connection: &Connection, app: AppId, group: &GroupName) -> Done<i64> {
    let sql = "SELECT no FROM groups WHERE app = ?1 AND name = ?2";
    let no = one(connection, sql, params![int(app.raw()), group.as_str()], |row| row.get(0))?;
    no.ok_or(missing("group"))
}

fn show(connection: &Connection, app: AppId, group: &GroupName) -> Done<Group> {
    let sql = "SELECT name, created_at, member_count FROM groups WHERE app = ?1 AND name = ?2";
    let key = params![int(app.raw()), group.as_str()];
    one(connection, sql, key, |row| read(row, app))?.ok_or(missing("group"))
}

fn read(row: &Row<'_>, app: AppId) -> Done<Group> {
    let (name, created_at) = (text(row, 0, GroupName::new)?, time(row, 1)?);
    Ok(Group { app, name, created_at, member_count: number(row, 2)? })
}
