use std::sync::OnceLock;

use async_trait::async_trait;
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::Batch;
use stentor_core::retry::RetryPolicy;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{app, at};
use stentor_storage::memory::MemoryStore;

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

#[tokio::test]
async fn a_credential_that_was_read_before_another_was_put_is_not_used() {
    let store = MemoryStore::new();
    store.create_app(&app(1)).await.expect("new");
    let key = (app(1).id, ProviderKind::Fcm);
    let secret = "{}".to_owned();
    let credential = Credential { app: key.0, provider: key.1, secret, updated_at: at(0) };
    store.put_credential(&credential).await.expect("kept");
    let lanes: Arc<OnceLock<Arc<ProviderTable>>> = Arc::default();
    let (told, first) = (lanes.clone(), std::sync::atomic::AtomicBool::new(true));
    let factory = move |_: &Credential| {
        // Between the reading and the installing, once.
        if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            told.get().expect("made").changed(key);
        }
        Ok::<Arc<dyn Provider>, Invalid>(Arc::new(Silent))
    };
    let policy = RetryPolicy::default();
    let rules = BreakerRules { probe_after: Duration::from_secs(60), unanswered_max_attempts: 20, policy };
    let limiter_rules = RateLimiterRules {
        ramp: Duration::from_secs(60),
        urgent_share_percent: 20,
        chunk_max_devices: 1_000,
        is_shared: false,
    };
    let made = Arc::new(ProviderTable::new(
        Arc::new(store),
        Arc::new(factory),
        rules,
        limiter_rules,
        Levels::open(None),
        None,
    ));
    assert!(lanes.set(made.clone()).is_ok());
    assert!(made.handle(key, at(1)).await.is_none(), "what was read is out of date");
    assert!(made.parking(key).is_none(), "nothing rests for it");
    assert!(made.handle(key, at(1)).await.is_some());
}
