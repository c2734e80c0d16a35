//! The registry: services are published, found, and removed after their expiry.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use stentor_core::ports::clock::Clock;
use stentor_core::time::Timestamp;

use crate::harness::{Read, Reading, Server, Tenant, durable_server_at, server};

/// A clock that the test sets, in seconds after it began.
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + self.0.load(Ordering::SeqCst) * 1_000)
    }
}

async fn publish(server: &Server, tenant: &Tenant, name: &str, body: Value) -> Read {
    server.send(tenant, Method::PUT, &format!("/v1/services/{name}")).json(&body).read().await
}

fn names(list: &Value) -> Vec<&str> {
    let services = list["services"].as_array().expect("a list");
    services.iter().map(|one| one["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn a_service_is_found_until_its_time_is_over_and_lives_on_when_it_is_published_again() {
    let clock = Arc::new(SetClock(AtomicI64::new(0)));
    let server = durable_server_at(clock.clone(), tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    let body = json!({"kind": "ipp", "address": "ipp://127.0.0.1/print", "ttl_seconds": 60});
    let first = publish(&server, &tenant, "printer", body.clone()).await;
    assert_eq!((first.status, &first.body["name"]), (200, &json!("printer")), "{first:?}");
    clock.0.store(59, Ordering::SeqCst);
    let again = publish(&server, &tenant, "printer", body).await;
    assert_eq!(again.body["published_at"], first.body["published_at"]);
    assert_ne!(again.body["expires_at"], first.body["expires_at"]);
    clock.0.store(118, Ordering::SeqCst);
    assert_eq!(server.get(&tenant, "/v1/services/printer").await["address"], "ipp://127.0.0.1/print");
    clock.0.store(119, Ordering::SeqCst);
    let gone = server.send(&tenant, Method::GET, "/v1/services/printer").read().await;
    assert_eq!(gone.refusal().0, 404, "{gone:?}");
    assert_eq!(names(&server.get(&tenant, "/v1/services").await), Vec::<&str>::new());
    let unsaid = publish(&server, &tenant, "other", json!({"kind": "http", "address": "http://h"})).await;
    assert_eq!(unsaid.status, 200, "{unsaid:?}");
    clock.0.store(119 + 299, Ordering::SeqCst);
    assert_eq!(names(&server.get(&tenant, "/v1/services").await), ["other"]);
    clock.0.store(119 + 300, Ordering::SeqCst);
    assert_eq!(names(&server.get(&tenant, "/v1/services").await), Vec::<&str>::new());
}

#[tokio::test]
async fn services_are_listed_by_kind_and_page_and_removed() {
    let server = server().await;
    let tenant = server.tenant().await;
    for (name, kind) in [("c", "http"), ("a", "http"), ("b", "grpc")] {
        let put = publish(&server, &tenant, name, json!({"kind": kind, "address": "http://h"})).await;
        assert_eq!(put.status, 200, "{put:?}");
    }
    assert_eq!(names(&server.get(&tenant, "/v1/services?kind=http").await), ["a", "c"]);
    let first = server.get(&tenant, "/v1/services?limit=2").await;
    assert_eq!((names(&first), &first["next"]), (vec!["a", "b"], &json!("b")));
    assert_eq!(names(&server.get(&tenant, "/v1/services?limit=2&after=b").await), ["c"]);
    assert_eq!(server.send(&tenant, Method::DELETE, "/v1/services/a").read().await.status, 204);
    assert_eq!(server.send(&tenant, Method::DELETE, "/v1/services/a").read().await.refusal().0, 404);
}

#[tokio::test]
async fn what_is_said_of_a_service_is_checked_and_only_who_may_register_publishes() {
    let server = server().await;
    let tenant = server.tenant().await;
    let good =
        json!({"kind": "http", "address": "http://h", "description": "It serves.", "ttl_seconds": 604_800});
    assert_eq!(publish(&server, &tenant, "a", good.clone()).await.status, 200);
    let wrong = [
        ("kind", json!("h ttp")),
        ("kind", json!("k".repeat(64))),
        ("address", json!("")),
        ("address", json!("a".repeat(2_049))),
        ("address", json!("http://h\r\nx")),
        ("description", json!("\u{7}")),
        ("ttl_seconds", json!(0)),
        ("ttl_seconds", json!(604_801)),
    ];
    for (field, value) in wrong {
        let mut body = good.clone();
        body[field] = value;
        let refused = publish(&server, &tenant, "b", body).await;
        let (status, code, named) = refused.refusal();
        assert_eq!((status, &*code, named.as_deref()), (422, "invalid_field", Some(field)), "{refused:?}");
    }
    assert_eq!(publish(&server, &tenant, "no.dots", good.clone()).await.refusal().0, 422);
    let sender = server.key(&tenant.id, &["send"]).await;
    let refused = server.with_key(&sender, Method::PUT, "/v1/services/a").json(&good).read().await;
    assert_eq!(refused.refusal().0, 403, "{refused:?}");
    let found = server.with_key(&sender, Method::GET, "/v1/services/a").read().await;
    assert_eq!((found.status, &found.body["description"]), (200, &json!("It serves.")));
}
