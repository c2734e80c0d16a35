//! Servers that come and go.

use std::time::Duration;

use stentor_core::campaign::Tally;
use stentor_core::ports::store::{NodeEvent, NodeNotice, PruneTask, Store};
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, Scene, accept_all, at, joining, lease_of};

const PATIENCE: Duration = Duration::from_secs(3_600);

pub async fn who_joins_gets_a_number_above_all_that_are_in_use(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let last = store.last_id().await.expect("the last id");
    let first = store.join(joining(1), at(1)).await.expect("joined");
    assert!(first.instance > last && first.instance > scene.app.raw());
    store.recover(first.instance, at(1)).await.expect("recovered");
    let again = store.join(joining(1), at(1)).await.expect("joined");
    assert!(again.instance > first.instance);
    assert!(store.beat(again.instance, Some(PATIENCE), at(2)).await.expect("noted").is_known);
}

pub async fn what_a_node_had_leased_is_released_when_it_starts_again(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let first = store.join(joining(1), at(1)).await.expect("joined");
    store.recover(first.instance, at(1)).await.expect("recovered");
    store.lease(&[tickets[0].chunk], lease_of(first.instance, at(1))).await.expect("leased");
    let again = store.join(joining(1), at(2)).await.expect("joined");
    let (recovery, _) = store.recover(again.instance, at(2)).await.expect("recovered");
    assert_eq!((recovery.chunks, recovery.deliveries), (1, 3));
    assert_eq!(scene.tally(message).await, Tally { queued: 3, ..Tally::default() });
    let leased = scene.lease(tickets[0].chunk, at(3)).await;
    assert!(leased.ambiguous, "it may have been sent");
    scene.settled(accept_all(&leased, at(4))).await;
}

pub async fn a_node_hears_nothing_of_what_it_did_itself(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let own = store.join(joining(1), at(1)).await.expect("joined");
    store.publish(NodeNotice::Event(NodeEvent::Upstream(scene.app))).await.expect("told");
    let found = store.events_after(own.last_event).await.expect("read");
    assert!(found.events.is_empty() && !found.is_gapped);
    assert!(found.last_event >= own.last_event);
    store.leave(own.instance, at(2)).await.expect("left");
}

pub async fn what_nodes_published_lately_is_kept(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let own = store.join(joining(1), at(1)).await.expect("joined");
    store.publish(NodeNotice::Event(NodeEvent::CutOff(scene.app, None))).await.expect("told");
    assert_eq!(store.prune(PruneTask::Events, 100).await.map(|pruned| pruned.count), Ok(0));
    let found = store.events_after(own.last_event).await.expect("read");
    assert!(!found.is_gapped && !found.has_more);
}
