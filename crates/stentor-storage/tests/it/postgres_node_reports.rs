//! Two servers on one PostgreSQL database: the reports that each reads of the other.

use std::time::Duration;

use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{NodeNotice, NodeRecord, NodeStore, ParkedLane, QuotaClaim};
use stentor_core::quota::{Bucket, Quota};
use stentor_storage::conformance::scene::{Scene, at, joining};
use stentor_storage::postgres::PostgresStore;

use crate::postgres_nodes::{Pair, join};

async fn nodes(store: &PostgresStore) -> Vec<NodeRecord> {
    store.nodes().await.expect("listed")
}

#[tokio::test]
async fn a_server_finds_what_the_others_are_and_which_of_them_fires_schedules() {
    let Some(Pair { database, one, other }) = Pair::new() else { return };
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    let found = nodes(&other).await;
    let instances: Vec<_> =
        found.iter().map(|node| (node.node, node.instance, node.is_first, node.is_own)).collect();
    assert_eq!(instances, [(1, first.instance, true, false), (2, second.instance, false, true)]);
    assert_eq!((found[0].host.as_str(), found[0].version.as_str()), ("host-1", joining(1).version));
    assert_eq!(found[0].roles, joining(1).roles);
    assert!(found[0].schema_version > 5 && found[0].silent_for < Duration::from_secs(60));
    // The row of a program without these columns, and a clock that went back.
    database.command(
        "UPDATE nodes SET host = DEFAULT, roles = DEFAULT, version = DEFAULT, seen_at = clock_timestamp() + interval '1 hour'
        WHERE node = 1",
    );
    let old = nodes(&other).await.remove(0);
    assert_eq!((old.host.as_str(), old.version.as_str(), old.roles.len()), ("", "", 0));
    assert_eq!(old.silent_for, Duration::ZERO);
    one.leave(first.instance, at(2)).await.expect("left");
    let left: Vec<_> = nodes(&other).await.iter().map(|node| (node.node, node.is_first)).collect();
    assert_eq!(left, [(2, true)]);
}

#[tokio::test]
async fn lanes_that_rest_at_one_server_are_known_to_the_others_while_it_is_there() {
    let Some(Pair { database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let (first, _second) = (join(&one, 1).await, join(&other, 2).await);
    let lane = |provider, until, reason, detail: &str| ParkedLane {
        app: scene.app,
        provider,
        until,
        reason,
        detail: detail.to_owned(),
    };
    let refused = lane(ProviderKind::Fcm, None, Reason::CredentialRefused, "a key that is none");
    let resting = lane(ProviderKind::Apns, Some(at(9)), Reason::Unavailable, "later");
    one.publish(NodeNotice::Parked { instance: first.instance, lanes: vec![refused.clone(), resting] })
        .await
        .expect("reported");
    assert_eq!(nodes(&other).await[0].parked.len(), 2);
    one.publish(NodeNotice::Parked { instance: first.instance, lanes: vec![refused.clone()] })
        .await
        .expect("reported");
    let found = nodes(&other).await;
    assert_eq!((&found[0].parked, &found[1].parked), (&vec![refused.clone()], &Vec::new()));
    // A newer program may report reasons unknown to this one.
    database.command("UPDATE parked_lanes SET reason = 250");
    assert!(nodes(&other).await[0].parked.is_empty());
    one.publish(NodeNotice::Parked { instance: first.instance, lanes: vec![refused.clone()] })
        .await
        .expect("reported");
    one.leave(first.instance, at(2)).await.expect("left");
    assert_eq!(database.count("parked_lanes"), 0);
    one.publish(NodeNotice::Parked { instance: first.instance, lanes: vec![refused] })
        .await
        .expect("nobody asks any more");
    assert_eq!(database.count("parked_lanes"), 0);
}

#[tokio::test]
async fn what_a_shared_quota_has_left_is_known_to_servers_that_draw_nothing_from_it() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let (app, provider) = (scene.app, ProviderKind::Fcm);
    assert_eq!(other.quota_level(app, provider).await, Ok(None), "nobody has drawn from it");
    let quota = Quota { per_minute: 6_000, ramp: Duration::ZERO, urgent_share_percent: 20 };
    let claim = QuotaClaim { app, provider, quota, class: TrafficClass::Bulk, least: 1, most: 10_000 };
    assert_eq!(one.draw(vec![claim]).await, Ok(vec![10_000]), "a full bucket gives all, and owes");
    let level = other.quota_level(app, provider).await.expect("read").expect("drawn from");
    let mut bucket = Bucket::resume(quota.shared(), level, level.at);
    assert!(bucket.tokens(TrafficClass::Bulk, level.at) < 0, "it owes");
    assert_eq!(other.quota_level(app, ProviderKind::Apns).await, Ok(None));
}
