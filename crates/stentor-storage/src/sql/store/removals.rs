//! The port for removals.

use async_trait::async_trait;
use stentor_core::id::AppId;
use stentor_core::ports::store::{Removal, RemovalStore, StoreError};

use super::{devices, groups, registry, topics, users};
use crate::sql::{SqlEngine, SqlStore};

#[async_trait]
impl<E: SqlEngine> RemovalStore for SqlStore<E> {
    async fn remove(&self, app: AppId, removal: Removal) -> Result<(), StoreError> {
        self.write_registry(move |connection| match &removal {
            Removal::Device(id, precondition) => devices::remove(connection, app, *id, precondition),
            Removal::Topic(topic, precondition) => topics::remove(connection, app, topic, precondition),
            Removal::UnusedTopics(unused, now) => {
                unused.iter().try_for_each(|topic| topics::remove_unused(connection, app, topic, *now))
            }
            Removal::User(user, precondition) => users::remove(connection, app, user, precondition),
            Removal::Group(group, precondition) => groups::remove(connection, app, group, precondition),
            Removal::Service(name, now) => registry::remove(connection, app, name, *now),
        })
        .await
    }
}
