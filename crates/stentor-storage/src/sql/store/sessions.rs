//! Sessions of the web console that ended before their time.

use async_trait::async_trait;
use stentor_core::ports::store::{EndedSession, SessionStore, StoreError};
use stentor_core::time::Timestamp;

use crate::sql::{SqlEngine, SqlStore, exists, int, run};

#[async_trait]
impl<E: SqlEngine> SessionStore for SqlStore<E> {
    async fn end_session(&self, ended: EndedSession, now: Timestamp) -> Result<(), StoreError> {
        self.write(move |connection| {
            run(connection, "DELETE FROM ended_sessions WHERE expires_at <= ?1", [now.as_millis()])?;
            let sql =
                "INSERT INTO ended_sessions (number, expires_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            run(connection, sql, [int(ended.number), ended.expires_at.as_millis()])?;
            Ok(())
        })
        .await
    }

    async fn is_session_ended(&self, number: u64) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM ended_sessions WHERE number = ?1";
        self.read(move |connection| exists(connection, sql, [int(number)])).await
    }
}
