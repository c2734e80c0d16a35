//! The registry of services.

use stentor_core::id::AppId;
use stentor_core::limits::SERVICES_PER_APP_MAX_COUNT;
use stentor_core::name::{ServiceAddress, ServiceKind, ServiceName, ServiceText};
use stentor_core::ports::store::{Removal, Store, StoreError};
use stentor_core::published::PublishedService;

use crate::conformance::PlainChanges;
use crate::conformance::scene::{Scene, at};

fn name(text: &str) -> ServiceName {
    ServiceName::new(text).expect("a name")
}

fn kind(text: &str) -> ServiceKind {
    ServiceKind::new(text).expect("a kind")
}

/// Returns a service that is published at the beginning and expires then.
fn published(app: AppId, text: &str, of: &str, expires: i64) -> PublishedService {
    let address = ServiceAddress::new(format!("http://127.0.0.1/{text}")).expect("an address");
    PublishedService {
        app,
        name: name(text),
        kind: kind(of),
        address,
        description: ServiceText::new("It prints.").ok(),
        published_at: at(0),
        expires_at: at(expires),
    }
}

pub async fn a_service_is_found_by_name_and_by_kind(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let all = [("c", "http"), ("a", "http"), ("b", "grpc")].map(|(name, kind)| published(app, name, kind, 9));
    for service in &all {
        assert_eq!(store.put_service(service, at(0)).await.as_ref(), Ok(service));
    }
    assert_eq!(store.service(app, &name("b"), at(1)).await.as_ref(), Ok(&all[2]));
    let sorted = [all[1].clone(), all[2].clone(), all[0].clone()];
    assert_eq!(store.services(app, None, None, at(1), 9).await.as_deref(), Ok(&sorted[..]));
    assert_eq!(store.services(app, None, Some(&name("a")), at(1), 1).await.as_deref(), Ok(&sorted[1..2]));
    let of_kind = store.services(app, Some(&kind("http")), Some(&name("a")), at(1), 9).await;
    assert_eq!(of_kind.as_deref(), Ok(&all[..1]));
}

pub async fn a_service_published_again_keeps_its_first_time_and_lives_on(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    store.put_service(&published(app, "printer", "ipp", 5), at(0)).await.expect("kept");
    let mut again = published(app, "printer", "http", 20);
    (again.published_at, again.description) = (at(4), None);
    let stored = store.put_service(&again, at(4)).await.expect("kept");
    again.published_at = at(0);
    assert_eq!(stored, again);
    assert_eq!(store.service(app, &name("printer"), at(19)).await, Ok(again));
}

pub async fn what_has_expired_is_not_found_and_makes_room(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    for number in 0..SERVICES_PER_APP_MAX_COUNT {
        let expires = if number == 7 { 5 } else { 50 };
        store
            .put_service(&published(app, &format!("s{number}"), "http", expires), at(0))
            .await
            .expect("kept");
    }
    let one_more = published(app, "one-more", "http", 50);
    let refused = store.put_service(&one_more, at(4)).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    assert!(store.put_service(&published(app, "s1", "grpc", 60), at(4)).await.is_ok(), "it has its place");
    assert!(matches!(store.service(app, &name("s7"), at(5)).await, Err(StoreError::NotFound(_))));
    let listed = store.services(app, None, None, at(5), SERVICES_PER_APP_MAX_COUNT).await.expect("listed");
    assert_eq!(listed.len(), SERVICES_PER_APP_MAX_COUNT - 1);
    let gone = store.remove(app, Removal::Service(name("s7"), at(5))).await;
    assert!(matches!(gone, Err(StoreError::NotFound(_))), "{gone:?}");
    store.put_service(&one_more, at(5)).await.expect("there is room");
}

pub async fn a_removed_service_is_gone_and_another_apps_stays(store: &dyn Store) {
    let (app, other) = (Scene::new(store).await.app, Scene::in_app(store, 2).await.app);
    for app in [app, other] {
        store.put_service(&published(app, "printer", "ipp", 9), at(0)).await.expect("kept");
    }
    store.remove(app, Removal::Service(name("printer"), at(1))).await.expect("removed");
    let again = store.remove(app, Removal::Service(name("printer"), at(1))).await;
    assert!(matches!(again, Err(StoreError::NotFound(_))), "{again:?}");
    assert_eq!(store.services(app, None, None, at(1), 9).await, Ok(Vec::new()));
    assert!(store.service(other, &name("printer"), at(1)).await.is_ok());
    store.delete_app(other).await.expect("deleted");
    assert!(store.service(other, &name("printer"), at(1)).await.is_err(), "it goes with its app");
    let unknown = store.put_service(&published(other, "printer", "ipp", 9), at(2)).await;
    assert!(matches!(unknown, Err(StoreError::NotFound("app"))), "{unknown:?}");
}
