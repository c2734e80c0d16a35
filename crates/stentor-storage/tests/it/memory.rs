//! Store and queue in memory, judged by the suites.

use stentor_storage::conformance::MemoryQueueHome;
use stentor_storage::memory::MemoryStore;
use stentor_storage::{model_suite, queue_suite, store_suite};

store_suite!(store, MemoryStore::new);
queue_suite!(queue, MemoryQueueHome::default);

model_suite!(model, MemoryStore::new, 100);
