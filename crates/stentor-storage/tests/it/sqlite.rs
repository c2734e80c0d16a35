//! Store and queue on SQLite, judged by the suites.

use async_trait::async_trait;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::Store;
use stentor_storage::conformance::{QueueHome, StoreHome};
use stentor_storage::sqlite::{SqliteQueue, SqliteSettings, SqliteStore};
use stentor_storage::{model_suite, queue_suite, store_suite};
use tempfile::TempDir;

/// A directory that is removed with the value.
struct Home {
    directory: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { directory: TempDir::new().expect("a temporary directory") }
    }
}

#[async_trait]
impl StoreHome for Home {
    async fn open(&self) -> Box<dyn Store> {
        let path = self.directory.path().join("stentor.db");
        let keys = "5a".repeat(32).parse().expect("a key");
        Box::new(SqliteStore::open_sealed(path, SqliteSettings::store(), keys).expect("opened"))
    }
}

#[async_trait]
impl QueueHome for Home {
    async fn open(&self) -> Box<dyn Queue> {
        let path = self.directory.path().join("queue.db");
        Box::new(SqliteQueue::open(path, SqliteSettings::queue()).expect("opened"))
    }

    fn persists(&self) -> bool {
        true
    }
}

/// A store that commits without waiting for the disk, so that more scripts fit into the time.
fn temporary() -> SqliteStore {
    SqliteStore::temporary().expect("a store")
}

store_suite!(store, Home::new);
queue_suite!(queue, Home::new);

model_suite!(model, Home::new, 24);
model_suite!(temporary_model, temporary, 30);
