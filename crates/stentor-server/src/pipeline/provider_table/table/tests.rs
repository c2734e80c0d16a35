use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::{Batch, ProviderStats};
use stentor_core::retry::RetryPolicy;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{app, at};
use stentor_storage::sqlite::SqliteStore;

use super::*;

struct Silent;

#[async_trait]
impl Provider for Silent {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Fcm
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        vec![Outcome::Unknown; batch.devices.len()]
    }

    fn stats(&self) -> ProviderStats {
        ProviderStats::default()
    }
}

/// Creates a table and replaces the credential between its first reading and the installation of the provider or error.
async fn put_anew_while_it_is_read(key: ProviderKey, is_sound: bool) -> Arc<ProviderTable> {
    let store = SqliteStore::temporary().expect("a store");
    store.create_app(&app(1)).await.expect("new");
    let secret = "{}".to_owned();
    let credential = Credential { app: key.0, provider: key.1, secret, updated_at: at(0) };
    store.put_credential(&credential).await.expect("kept");
    let table: Arc<OnceLock<Arc<ProviderTable>>> = Arc::default();
    let (notified_table, first) = (Arc::clone(&table), AtomicBool::new(true));
    let factory = move |_: &Credential| {
        let is_first = first.swap(false, Ordering::SeqCst);
        if is_first {
            notified_table.get().expect("made").changed(key);
        }
        match is_sound || !is_first {
            true => Ok::<Arc<dyn Provider>, Invalid>(Arc::new(Silent)),
            false => Err(Invalid::new("credential", "is of no use")),
        }
    };
    let policy = RetryPolicy::default();
    let rules = BreakerRules { probe_after: Duration::from_secs(60), unanswered_max_attempts: 20, policy };
    let limiter_rules = RateLimiterRules {
        ramp: Duration::from_secs(60),
        urgent_share_percent: 20,
        chunk_max_devices: 1_000,
        is_shared: false,
    };
    let (store, levels) = (Arc::new(store), Levels::open(None));
    let made = Arc::new(ProviderTable::new(
        store,
        Arc::new(factory),
        rules,
        limiter_rules,
        levels,
        mpsc::channel(1).0,
    ));
    assert!(table.set(Arc::clone(&made)).is_ok());
    made
}

#[tokio::test]
async fn a_credential_that_was_read_before_another_was_put_is_not_used() {
    for is_sound in [true, false] {
        let key = (app(1).id, ProviderKind::Fcm);
        let table = put_anew_while_it_is_read(key, is_sound).await;
        assert!(table.handle(key, at(1)).await.is_none(), "what was read is out of date");
        assert!(table.parking(key).is_none(), "nothing rests for it");
        assert!(table.handle(key, at(1)).await.is_some());
    }
}
