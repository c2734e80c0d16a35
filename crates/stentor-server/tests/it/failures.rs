//! Internal failures, as a caller and an operator see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use stentor_core::ports::clock::Clock;
use stentor_core::time::Timestamp;
use stentor_server::app::AppError;
use stentor_server::clock::SystemClock;

use crate::harness::{Reading, Server, Tenant, server_over};
use crate::trap::Trap;

/// Polls until a condition holds.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !so().await {
        assert!(Instant::now() < patience, "{what} did not happen");
        tokio::task::yield_now().await;
    }
}

/// Lets the settler hang, so that a server whose pipeline fails still answers for a while.
async fn hold(server: &Server, tenant: &Tenant, trap: &Trap) {
    server.device(tenant, "held").await;
    trap.hang_at(Some("ack"));
    // To an audience: the queue has nothing of a single message that is sent at once.
    server.post(tenant, "/v1/messages", json!({"target": "everyone", "data": {"k": "v"}})).await;
    until("a settlement", async || trap.count("ack") > 0).await;
}

async fn unready(server: &Server) -> bool {
    server.open(Method::GET, "/readyz").read().await.status == 503
}

#[tokio::test]
async fn a_dead_part_makes_the_server_unready_and_ends_it_with_its_name() {
    let trap = Arc::new(Trap::default());
    let mut server = server_over(Arc::new(SystemClock), trap.clone()).await;
    let tenant = server.sender().await;
    let ready = server.open(Method::GET, "/readyz").read().await;
    assert_eq!((ready.status, ready.text("pipeline").as_str()), (200, "ok"));
    hold(&server, &tenant, &trap).await;
    trap.panic_at("depths");
    // A request for the readiness reads the depths as well, and would meet the fault in the janitor's place.
    until("a fault of the janitor", async || trap.has_sprung()).await;
    until("an unready server", async || unready(&server).await).await;
    let response = server.open(Method::GET, "/readyz").read().await;
    assert_eq!(
        (&response.body["pipeline"], &response.body["failed"]),
        (&json!("unavailable"), &json!(["janitor"]))
    );
    let metrics = server.open(Method::GET, "/metrics").read().await.body.to_string();
    assert!(metrics.contains("stentor_pipeline_failures_total{part=\\\"janitor\\\"} 1"), "{metrics}");
    trap.hang_at(None);
    let ended = server.ended_by_itself().await;
    assert!(matches!(&ended, Err(AppError::Part { part, .. }) if part == "janitor"), "{ended:?}");
    assert!(ended.expect_err("failed").to_string().contains("restart the server"));
}

#[tokio::test]
async fn a_dead_thread_of_an_engine_makes_the_server_unready_and_ends_it_with_its_name() {
    let trap = Arc::new(Trap::default());
    let mut server = server_over(Arc::new(SystemClock), trap.clone()).await;
    let tenant = server.sender().await;
    hold(&server, &tenant, &trap).await;
    trap.lose_its_thread();
    until("an unready server", async || unready(&server).await).await;
    let response = server.open(Method::GET, "/readyz").read().await;
    assert_eq!(response.body["failed"], json!(["queue's writer"]));
    trap.hang_at(None);
    let ended = server.ended_by_itself().await;
    assert!(matches!(&ended, Err(AppError::Part { part, .. }) if part == "queue's writer"), "{ended:?}");
}

#[tokio::test]
async fn a_queue_that_takes_nothing_makes_the_server_unready_until_it_does_again() {
    let trap = Arc::new(Trap::default());
    let server = server_over(Arc::new(SystemClock), trap.clone()).await;
    trap.be_full(true);
    let response = server.open(Method::GET, "/readyz").read().await;
    let words = (
        response.status,
        response.text("status"),
        response.text("store"),
        response.text("queue"),
        response.text("pipeline"),
    );
    assert_eq!(words, (503, "unavailable".into(), "ok".into(), "unavailable".into(), "ok".into()));
    trap.be_full(false);
    // Inspecting the parts takes a moment.
    until("a ready server", async || !unready(&server).await).await;
}

/// A clock that can be broken: the next reader of the time panics.
#[derive(Default)]
struct BrokenClock(AtomicBool);

impl Clock for BrokenClock {
    fn now(&self) -> Timestamp {
        assert!(!self.0.load(Ordering::SeqCst), "the clock is broken");
        SystemClock.now()
    }
}

#[tokio::test]
async fn a_request_that_panics_is_answered_with_500_and_a_problem() {
    let (clock, trap) = (Arc::new(BrokenClock::default()), Arc::new(Trap::default()));
    let server = server_over(clock.clone(), trap.clone()).await;
    let tenant = server.sender().await;
    hold(&server, &tenant, &trap).await;
    clock.0.store(true, Ordering::SeqCst);
    let body = json!({"platform": "android", "provider": "null", "token": "t1"});
    let read = server.send(&tenant, Method::POST, "/v1/devices").json(&body).read().await;
    assert_eq!(read.refusal(), (500, "internal".to_owned(), None));
    assert!(!read.body.to_string().contains("clock"), "what panicked is nobody's business: {read:?}");
}

#[tokio::test]
async fn looking_on_a_hundred_times_asks_the_queue_a_few_times() {
    let trap = Arc::new(Trap::default());
    let server = server_over(Arc::new(SystemClock), trap.clone()).await;
    let (before, began) = (trap.count("depths"), Instant::now());
    for _ in 0..100 {
        assert_eq!(server.open(Method::GET, "/readyz").read().await.status, 200);
        assert_eq!(server.open(Method::GET, "/metrics").read().await.status, 200);
    }
    // The pipeline itself queries the queue at most four times a second; watchers cause at most one query a second.
    let allowed = 2 + 5 * (began.elapsed().as_secs() as usize + 1);
    let depth_queries = trap.count("depths") - before;
    assert!(depth_queries <= allowed && depth_queries < 200, "{depth_queries} times, {allowed} are allowed");
}

#[tokio::test]
async fn a_queue_that_does_not_tell_its_depths_holds_up_no_drain() {
    let trap = Arc::new(Trap::default());
    let server = server_over(Arc::new(SystemClock), trap.clone()).await;
    trap.hang_at(Some("depths"));
    let before = trap.count("depths");
    until("a look that hangs", async || trap.count("depths") > before).await;
    let began = Instant::now();
    server.stop().await;
    // The deadline of a drain is 25 seconds here.
    assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
}
