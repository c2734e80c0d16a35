//! Store and queue on PostgreSQL, judged by the suites.

use async_trait::async_trait;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::Store;
use stentor_storage::conformance::{QueueHome, StoreHome};
use stentor_storage::postgres::{PostgresQueue, PostgresSettings, PostgresStore};
use stentor_storage::sqlite::{SqliteQueue, SqliteStore};
use stentor_storage::{model_suite, queue_suite, store_suite};

use crate::postgres_server::{TestDatabase, server};

/// A database of the case's own; where there is no server, a temporary SQLite store stands in for it, and the case proves nothing.
enum Home {
    Database(TestDatabase),
    Nothing(SqliteStore),
}

impl Home {
    fn new() -> Self {
        server().map_or_else(
            || Self::Nothing(SqliteStore::temporary().expect("a store")),
            |server| Self::Database(server.database()),
        )
    }
}

#[async_trait]
impl StoreHome for Home {
    async fn open(&self) -> Box<dyn Store> {
        match self {
            Self::Nothing(memory) => Box::new(memory.clone()),
            Self::Database(database) => {
                let keys = "5a".repeat(32).parse().expect("a key");
                let (address, settings) = (database.address(), PostgresSettings::default());
                Box::new(PostgresStore::open_sealed(&address, &settings, keys).expect("opened"))
            }
        }
    }
}

#[async_trait]
impl QueueHome for Home {
    async fn open(&self) -> Box<dyn Queue> {
        match self {
            Self::Nothing(_) => Box::new(SqliteQueue::temporary().expect("a queue")),
            Self::Database(database) => {
                let (address, settings) = (database.address(), PostgresSettings::default());
                Box::new(PostgresQueue::open(&address, &settings).expect("opened"))
            }
        }
    }

    fn persists(&self) -> bool {
        matches!(self, Self::Database(_))
    }
}

store_suite!(store, Home::new);

queue_suite!(queue, Home::new);

model_suite!(model, Home::new, 6, agrees 12);
