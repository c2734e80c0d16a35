//! Messages of devices to their apps, channels and replaced tokens.

use stentor_core::device::{DeviceKeys, DevicePatch, Platform, ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId, UpstreamId};
use stentor_core::limits::{
    CHANNELS_PER_AGENT_MAX_COUNT, FORMER_TOKENS_PER_DEVICE_MAX_COUNT, UPSTREAM_DEAD_PER_DEVICE_MAX_COUNT,
    UPSTREAM_PER_DEVICE_MAX_COUNT,
};
use stentor_core::ports::store::{
    Channel, ChannelChange, DeviceFilter, Page, PruneTask, Store, StoreError, UpstreamAction, UpstreamChange,
    UpstreamFilter,
};
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;
use stentor_core::upstream::{FormerSecret, UpstreamKind, UpstreamMessage, UpstreamWebhook};

use crate::conformance::PlainChanges;
use crate::conformance::scene::{Draft, Scene, after, at, finish_work, first};

const SETTLED: UpstreamAction = UpstreamAction::Settle { now: at(1) };
const REVIVED: UpstreamAction = UpstreamAction::Revive { expires_at: at(500) };

fn bury(reason: &str) -> UpstreamAction {
    UpstreamAction::Bury { reason: reason.to_owned() }
}

async fn prune(store: &dyn Store, expired_before: Timestamp, dead_before: Timestamp) -> u64 {
    store.prune(PruneTask::Upstream { expired_before, dead_before }, 10).await.expect("pruned").count
}

fn message(app: AppId, device: u64, id: u64, key: &str) -> UpstreamMessage {
    UpstreamMessage {
        id: UpstreamId::from_raw(id),
        app,
        device: DeviceId::from_raw(device),
        kind: UpstreamKind::Message,
        key: key.to_owned(),
        body: "{}".to_owned(),
        created_at: at(0),
        expires_at: at(100),
        attempts: 0,
        dead_reason: None,
    }
}

async fn channels(store: &dyn Store, agent: &str) -> Result<Vec<Channel>, StoreError> {
    Ok(store.channels(&[agent.to_owned()]).await?.remove(0))
}

async fn ids(store: &dyn Store, app: AppId, now: i64) -> Vec<u64> {
    let waiting = store.upstream(app, UpstreamFilter::Waiting, first(100), at(now)).await.expect("listed");
    waiting.iter().map(|one| one.id.raw()).collect()
}

pub async fn what_a_device_sends_waits_until_it_is_taken_over(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let (app, stranger) = (scene.app, AppId::from_raw(99));
    let (one, two) = (message(app, 1, 5, "a"), message(app, 2, 6, "a"));
    assert_eq!(store.keep_upstream(vec![one.clone(), two]).await, Ok(vec![true, true]));
    assert_eq!(store.upstream(app, UpstreamFilter::Waiting, first(1), at(1)).await, Ok(vec![one.clone()]));
    assert_eq!(
        store.upstream(app, UpstreamFilter::Waiting, after(5, 9), at(1)).await.expect("listed").len(),
        1
    );
    assert_eq!(ids(store, stranger, 1).await, Vec::<u64>::new());
    store.change_upstream(app, &[one.id], UpstreamAction::NoteAttempt).await.expect("noted");
    assert_eq!(
        store.upstream(app, UpstreamFilter::Waiting, first(1), at(1)).await.expect("listed")[0].attempts,
        1
    );
    let nothing = UpstreamId::from_raw(999);
    let unknown = UpstreamChange { unknown: vec![one.id], ..UpstreamChange::default() };
    assert_eq!(store.change_upstream(stranger, &[one.id], SETTLED).await, Ok(unknown));
    let settled = store.change_upstream(app, &[nothing, one.id, one.id], SETTLED).await;
    assert_eq!(settled, Ok(UpstreamChange { changed: 1, unchanged: 1, unknown: vec![nothing] }));
    let again = store.change_upstream(app, &[one.id], UpstreamAction::Settle { now: at(2) }).await;
    assert_eq!(again, Ok(UpstreamChange { unchanged: 1, ..UpstreamChange::default() }));
    assert_eq!(ids(store, app, 1).await, [6]);
}

pub async fn the_same_message_of_a_device_is_kept_once_even_after_it_was_taken_over(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    assert_eq!(store.keep_upstream(vec![message(app, 1, 5, "a")]).await, Ok(vec![true]));
    assert_eq!(store.keep_upstream(vec![message(app, 1, 6, "a")]).await, Ok(vec![false]));
    store.change_upstream(app, &[UpstreamId::from_raw(5)], SETTLED).await.expect("settled");
    assert_eq!(store.keep_upstream(vec![message(app, 1, 7, "a")]).await, Ok(vec![false]));
    assert!(ids(store, app, 1).await.is_empty());
}

pub async fn of_one_device_only_so_many_wait(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let many = UPSTREAM_PER_DEVICE_MAX_COUNT as u64;
    let all = (1..=many).map(|id| message(app, 1, id, &id.to_string())).collect();
    store.keep_upstream(all).await.expect("kept");
    let more = vec![message(app, 2, many + 1, "x"), message(app, 1, many + 2, "x")];
    assert!(matches!(store.keep_upstream(more).await, Err(StoreError::LimitReached(_))));
    let waiting = store.upstream(app, UpstreamFilter::Waiting, first(1_000), at(1)).await.expect("listed");
    assert_eq!(waiting.len() as u64, many, "all or nothing");
    store.change_upstream(app, &[UpstreamId::from_raw(1)], SETTLED).await.expect("settled");
    assert_eq!(store.keep_upstream(vec![message(app, 1, many + 2, "x")]).await, Ok(vec![true]));
}

pub async fn what_is_claimed_counts_as_tried_and_stays_its_own(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let one = message(app, 1, 5, "a");
    store.keep_upstream(vec![one.clone()]).await.expect("kept");
    for attempts in 1..=2 {
        assert_eq!(store.claim_upstream(app, &[one.id]).await, Ok(vec![one.id]));
        let free = store
            .upstream(app, UpstreamFilter::Free { with_receipts: false }, first(10), at(1))
            .await
            .expect("listed");
        assert_eq!(free, [UpstreamMessage { attempts, ..one.clone() }]);
    }
    store.change_upstream(app, &[one.id], UpstreamAction::Release).await.expect("let go");
    assert_eq!(
        store
            .upstream(app, UpstreamFilter::Free { with_receipts: true }, first(10), at(1))
            .await
            .expect("listed")
            .len(),
        1
    );
}

pub async fn a_dead_letter_waits_no_more_and_can_be_revived(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let one = message(app, 1, 5, "a");
    store.keep_upstream(vec![one.clone()]).await.expect("kept");
    store.change_upstream(app, &[one.id], bury("refused ten times")).await.expect("buried");
    assert!(ids(store, app, 1).await.is_empty());
    let dead = store.upstream(app, UpstreamFilter::Dead, first(10), at(1)).await.expect("listed");
    assert_eq!(dead, [UpstreamMessage { dead_reason: Some("refused ten times".to_owned()), ..one.clone() }]);
    let unknown = |id| UpstreamChange { unknown: vec![id], ..UpstreamChange::default() };
    assert_eq!(store.change_upstream(app, &[one.id], SETTLED).await, Ok(unknown(one.id)));
    let stranger = AppId::from_raw(99);
    assert_eq!(store.change_upstream(stranger, &[one.id], REVIVED).await, Ok(unknown(one.id)));
    let nothing = UpstreamId::from_raw(999);
    let revived = store.change_upstream(app, &[one.id, nothing, one.id], REVIVED).await;
    assert_eq!(revived, Ok(UpstreamChange { changed: 1, unchanged: 1, unknown: vec![nothing] }));
    assert_eq!(ids(store, app, 400).await, [5]);
    assert!(store.upstream(app, UpstreamFilter::Dead, first(10), at(1)).await.expect("listed").is_empty());
    store.change_upstream(app, &[one.id], SETTLED).await.expect("taken over");
    let late = store.change_upstream(app, &[one.id], REVIVED).await;
    assert_eq!(late, Ok(unknown(one.id)), "what was taken over is not tried again");
}

pub async fn what_has_expired_is_forgotten(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let (one, two) = (message(app, 1, 5, "a"), message(app, 1, 6, "b"));
    store.keep_upstream(vec![one, two.clone()]).await.expect("kept");
    store.change_upstream(app, &[two.id], bury("why")).await.expect("buried");
    assert!(ids(store, app, 100).await.is_empty());
    assert_eq!(prune(store, at(101), at(50)).await, 1);
    assert_eq!(store.upstream(app, UpstreamFilter::Dead, first(10), at(1)).await.expect("listed").len(), 1);
    assert_eq!(prune(store, at(300), at(200)).await, 1);
}

pub async fn a_program_has_its_channels_and_only_so_many(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let channel = |number: usize| Channel {
        name: format!("c{number:04}"),
        app,
        device: DeviceId::from_raw(number as u64),
    };
    for number in 0..CHANNELS_PER_AGENT_MAX_COUNT {
        store.put_channel("agent", &channel(number)).await.expect("kept");
    }
    let more = store.put_channel("agent", &channel(9_999)).await;
    assert!(matches!(more, Err(StoreError::LimitReached(_))));
    store.put_channel("agent", &channel(3)).await.expect("the same again");
    store.put_channel("other", &channel(9_999)).await.expect("another program's");
    assert_eq!(store.change_channel("agent", ChannelChange::Remove("c0003".to_owned())).await, Ok(true));
    assert_eq!(store.change_channel("agent", ChannelChange::Remove("c0003".to_owned())).await, Ok(false));
    let left = channels(store, "agent").await.expect("listed");
    assert_eq!((left.len(), &left[0]), (CHANNELS_PER_AGENT_MAX_COUNT - 1, &channel(0)));
    let agents = ["none", "other", "agent", "other"].map(str::to_owned);
    let all = store.channels(&agents).await.expect("listed");
    assert_eq!(all, [vec![], vec![channel(9_999)], left, vec![channel(9_999)]], "each in its place");
}

pub async fn a_token_that_was_replaced_leads_to_its_device(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let former = token_of(&scene, device).await;
    store.offer_token(scene.app, device, &push_token("new"), at(1)).await.expect("offered");
    assert_eq!(store.take_offered_token(scene.app, &push_token("new"), at(2)).await, Ok(Some(device)));
    let (_, tickets) = scene.send(Draft::to(Target::Token(to(former.clone())))).await;
    assert_eq!(scene.lease(tickets[0].chunk, at(3)).await.devices, [device]);
    let tokens = [former.expose().to_owned(), "unknown".to_owned()];
    assert_eq!(store.replaced_tokens(scene.app, &tokens).await, Ok(vec![Some(device), None]));
    store.remove_device(scene.app, device).await.expect("removed");
    assert_eq!(store.replaced_tokens(scene.app, &tokens).await, Ok(vec![None, None]));
}

pub async fn a_device_has_a_few_former_tokens_the_newest(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.devices(ProviderKind::Gateway, 2).await;
    let other = token_of(&scene, devices[1]).await;
    store.offer_token(scene.app, devices[1], &push_token("others"), at(1)).await.expect("offered");
    store.take_offered_token(scene.app, &push_token("others"), at(1)).await.expect("taken");
    let mut former = vec![other.expose().to_owned()];
    for number in 0..8 {
        former.push(token_of(&scene, devices[0]).await.expose().to_owned());
        let next = push_token(&format!("next-{number}"));
        // Some within one instant.
        store.offer_token(scene.app, devices[0], &next, at(2 + number / 4)).await.expect("offered");
        let taken = store.take_offered_token(scene.app, &next, at(2 + number / 4)).await;
        assert_eq!(taken, Ok(Some(devices[0])));
    }
    let found = store.replaced_tokens(scene.app, &former).await.expect("found");
    assert_eq!(
        found.iter().filter(|found| **found == Some(devices[0])).count(),
        FORMER_TOKENS_PER_DEVICE_MAX_COUNT
    );
    assert_eq!(found.last(), Some(&Some(devices[0])), "the one it had last");
    assert_eq!(found[0], Some(devices[1]), "another device's stays");
}

pub async fn of_the_dead_letters_of_a_device_the_newest_are_kept(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let most = UPSTREAM_DEAD_PER_DEVICE_MAX_COUNT as u64;
    for number in (0..most + 2).chain([9_999]) {
        let device = if number == 9_999 { 2 } else { 1 };
        let sent = message(app, device, 500 + number, &format!("m{number}"));
        store.keep_upstream(vec![sent.clone()]).await.expect("there is room: none waits");
        store.change_upstream(app, &[sent.id], bury("refused")).await.expect("buried");
    }
    let page = Page { after: 0, limit: 2 * most as usize };
    let dead = store.upstream(app, UpstreamFilter::Dead, page, at(1)).await.expect("listed");
    let of = |device| dead.iter().filter(|one| one.device == DeviceId::from_raw(device)).count();
    assert_eq!((of(1), of(2)), (most as usize, 1));
    assert_eq!(dead[0].key, "m2", "the oldest went");
}

pub async fn an_offered_token_is_the_devices_once_it_is_taken_and_not_before(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let former = token_of(&scene, device).await;
    store.offer_token(scene.app, device, &push_token("first"), at(1)).await.expect("offered");
    store.offer_token(scene.app, device, &push_token("second"), at(2)).await.expect("offered");
    let take = |text| {
        let (app, token) = (scene.app, push_token(text));
        async move { store.take_offered_token(app, &token, at(3)).await }
    };
    assert_eq!(take("first").await, Ok(None), "only the latest offer counts");
    assert_eq!(take("unknown").await, Ok(None));
    assert_eq!(token_of(&scene, device).await, former);
    assert_eq!(take("second").await, Ok(Some(device)));
    assert_eq!(token_of(&scene, device).await, push_token("second"));
    assert_eq!(take("second").await, Ok(None), "it is taken once");
}

pub async fn an_offer_counts_no_more_when_the_device_has_another_token_or_is_gone(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.devices(ProviderKind::Gateway, 2).await;
    for (device, text) in devices.iter().zip(["one", "two"]) {
        store.offer_token(scene.app, *device, &push_token(text), at(1)).await.expect("offered");
    }
    let patch = DevicePatch { token: Some(push_token("other")), ..DevicePatch::default() };
    store.patch_device(scene.app, devices[0], &patch, at(2)).await.expect("changed");
    assert_eq!(store.take_offered_token(scene.app, &push_token("one"), at(3)).await, Ok(None));
    assert_eq!(token_of(&scene, devices[0]).await, push_token("other"));
    store.remove_device(scene.app, devices[1]).await.expect("removed");
    assert_eq!(store.take_offered_token(scene.app, &push_token("two"), at(3)).await, Ok(None));
    let offered = store.offer_token(scene.app, devices[1], &push_token("more"), at(3)).await;
    assert_eq!(offered, Err(StoreError::NotFound("device")));
}

pub async fn what_the_gateway_keeps_of_a_device_goes_with_it(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.devices(ProviderKind::Gateway, 2).await;
    let channel = |device: DeviceId| Channel { name: format!("of {device}"), app: scene.app, device };
    let mut former = Vec::new();
    for (device, text) in devices.iter().zip(["one", "two"]) {
        store.put_channel("agent", &channel(*device)).await.expect("kept");
        former.push(token_of(&scene, *device).await.expose().to_owned());
        store.offer_token(scene.app, *device, &push_token(text), at(1)).await.expect("offered");
        store.take_offered_token(scene.app, &push_token(text), at(2)).await.expect("taken");
    }
    let sent = message(scene.app, devices[0].raw(), 500, "m");
    store.keep_upstream(vec![sent.clone()]).await.expect("kept");
    store.remove_device(scene.app, devices[0]).await.expect("removed");
    assert_eq!(channels(store, "agent").await, Ok(vec![channel(devices[1])]));
    assert_eq!(store.replaced_tokens(scene.app, &former).await, Ok(vec![None, Some(devices[1])]));
    let waiting = store.upstream(scene.app, UpstreamFilter::Waiting, first(10), at(3)).await;
    assert_eq!(waiting, Ok(vec![sent]), "what it has sent is promised to the app");
}

pub async fn what_the_gateway_keeps_of_an_apps_devices_goes_with_the_app(store: &dyn Store) {
    let (gone, stays) = (Scene::in_app(store, 1).await, Scene::in_app(store, 2).await);
    let mut pairs = Vec::new();
    for scene in [&gone, &stays] {
        let device = scene.devices(ProviderKind::Gateway, 1).await[0];
        let channel = Channel { name: format!("of {device}"), app: scene.app, device };
        store.put_channel("agent", &channel).await.expect("kept");
        let sent = message(scene.app, device.raw(), 500 + scene.app.raw(), "m");
        store.keep_upstream(vec![sent.clone()]).await.expect("kept");
        pairs.push((channel, sent));
    }
    store.delete_app(gone.app).await.expect("deleted");
    finish_work(store).await;
    assert_eq!(channels(store, "agent").await, Ok(vec![pairs[1].0.clone()]));
    assert_eq!(store.upstream(gone.app, UpstreamFilter::Waiting, first(10), at(1)).await, Ok(Vec::new()));
    assert_eq!(
        store.upstream(stays.app, UpstreamFilter::Waiting, first(10), at(1)).await,
        Ok(vec![pairs[1].1.clone()])
    );
}

fn keys(p256dh: &str) -> DeviceKeys {
    DeviceKeys { p256dh: p256dh.to_owned(), auth: "BTBZ".to_owned() }
}

pub async fn a_device_has_the_keys_that_it_registered_last_until_it_takes_them_back(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.devices(ProviderKind::Gateway, 2).await;
    // A program's channel of the same device is none of its keys.
    let channel = Channel { name: "a b".to_owned(), app: scene.app, device: devices[0] };
    store.put_channel("agent", &channel).await.expect("kept");
    let stored_keys = async || store.device(scene.app, devices[0]).await.expect("there").keys;
    assert_eq!(stored_keys().await, None);
    for point in ["one", "two", "two", "again"] {
        store.put_device_keys(scene.app, devices[0], Some(&keys(point))).await.expect("kept");
        assert_eq!(stored_keys().await, Some(keys(point)));
    }
    let token = token_of(&scene, devices[0]).await;
    let held = store.holders(scene.app, ProviderKind::Gateway, &[token]).await.expect("found");
    let held = held.into_iter().next().flatten().map(|device| device.keys);
    let listed = store.devices(scene.app, &DeviceFilter::default(), first(10)).await.expect("listed");
    let listed: Vec<_> = listed.into_iter().map(|device| device.keys).collect();
    assert_eq!((held, listed), (Some(Some(keys("again"))), vec![Some(keys("again")), None]));
    let patch = DevicePatch { tags: Some(Vec::new()), ..DevicePatch::default() };
    let changed = store.patch_device(scene.app, devices[0], &patch, at(2)).await.expect("changed");
    assert_eq!(changed.keys, Some(keys("again")));
    store.put_device_keys(scene.app, devices[0], None).await.expect("gone");
    assert_eq!(stored_keys().await, None);
    assert_eq!(channels(store, "agent").await, Ok(vec![channel]), "it is another's");
}

pub async fn keys_are_of_devices_of_the_gateway_and_of_their_app_alone(store: &dyn Store) {
    let (scene, other) = (Scene::in_app(store, 1).await, Scene::in_app(store, 2).await);
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let foreign = scene.devices(ProviderKind::Fcm, 1).await[0];
    let unknown = DeviceId::from_raw(999);
    for (app, device) in [(other.app, device), (scene.app, foreign), (scene.app, unknown)] {
        let put = store.put_device_keys(app, device, Some(&keys("one"))).await;
        assert_eq!(put, Err(StoreError::NotFound("device")));
    }
    store.put_device_keys(scene.app, device, Some(&keys("one"))).await.expect("kept");
    store.remove_device(scene.app, device).await.expect("removed");
    let put = store.put_device_keys(scene.app, device, Some(&keys("two"))).await;
    assert_eq!(put, Err(StoreError::NotFound("device")));
    let next = scene.devices(ProviderKind::Gateway, 1).await[0];
    assert_eq!(store.device(scene.app, next).await.expect("there").keys, None);
}

fn to(token: PushToken) -> TokenTarget {
    TokenTarget { platform: Platform::Linux, provider: ProviderKind::Gateway, token }
}

fn push_token(text: &str) -> PushToken {
    PushToken::new(text).expect("a token")
}

async fn token_of(scene: &Scene<'_>, device: DeviceId) -> PushToken {
    scene.store.device(scene.app, device).await.expect("there").token
}

pub async fn a_webhook_is_replaced_and_removed_and_goes_with_its_app(store: &dyn Store) {
    let (one, two) = (Scene::in_app(store, 1).await.app, Scene::in_app(store, 2).await.app);
    let webhook = |app, url: &str| UpstreamWebhook {
        app,
        url: url.to_owned(),
        secret: format!("whsec_{url}"),
        updated_at: at(7),
        former: url
            .contains("c.example")
            .then(|| FormerSecret { secret: "whsec_former".to_owned(), until: at(9) }),
    };
    for (app, url) in [(one, "http://a.example/"), (two, "http://b.example/"), (one, "http://c.example/\"\\")]
    {
        store.put_webhook(&webhook(app, url)).await.expect("kept");
    }
    let (newest, other) = (webhook(one, "http://c.example/\"\\"), webhook(two, "http://b.example/"));
    assert_eq!(store.upstream_webhook(one).await, Ok(newest.clone()));
    assert_eq!(store.upstream_webhooks().await, Ok(vec![newest, other.clone()]));
    store.delete_webhook(one).await.expect("removed");
    assert_eq!(store.delete_webhook(one).await, Err(StoreError::NotFound("webhook")));
    assert_eq!(store.upstream_webhook(one).await, Err(StoreError::NotFound("webhook")));
    let nobodys = store.put_webhook(&webhook(AppId::from_raw(99), "http://d.example/")).await;
    assert_eq!(nobodys, Err(StoreError::NotFound("app")));
    assert_eq!(store.upstream_webhooks().await, Ok(vec![other]));
    store.delete_app(two).await.expect("removed");
    assert_eq!(store.upstream_webhooks().await, Ok(Vec::new()));
}

pub async fn a_receipt_is_given_to_those_who_want_it_and_takes_no_place_of_a_message(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let many = UPSTREAM_PER_DEVICE_MAX_COUNT as u64;
    let all = (1..=many).map(|id| message(app, 1, id, &id.to_string())).collect();
    store.keep_upstream(all).await.expect("kept");
    let receipt = UpstreamMessage { kind: UpstreamKind::Receipt, ..message(app, 1, many + 1, "1") };
    let again = UpstreamMessage { id: UpstreamId::from_raw(many + 2), ..receipt.clone() };
    assert_eq!(store.keep_upstream(vec![receipt.clone()]).await, Ok(vec![true]), "however many wait");
    assert_eq!(store.keep_upstream(vec![again]).await, Ok(vec![false]));
    assert_eq!(ids(store, app, 1).await.len() as u64, many, "no message");
    let both = store
        .upstream(app, UpstreamFilter::WaitingAndReceipts, after(many - 1, 9), at(1))
        .await
        .expect("listed");
    assert_eq!((both.len(), both.last()), (2, Some(&receipt)));
    let settled = store.change_upstream(app, &[receipt.id], SETTLED).await.expect("settled");
    assert_eq!(settled.changed, 1);
    let left = store.upstream(app, UpstreamFilter::WaitingAndReceipts, after(many, 9), at(1)).await;
    assert_eq!(left, Ok(Vec::new()));
}

/// Texts that every engine keeps and gives back as they were: a store can be copied into every other.
const KEPT_TEXTS: [&str; 7] = [
    "a b",
    "\u{1}\u{1f}\u{7f}\u{9f}",
    "\u{feff}a",
    "\u{fffe}\u{ffff}",
    "\u{10ffff}",
    "a\u{308}\u{e4}",
    "' OR 1=1; -- \\",
];
/// Texts that none keeps.
const REFUSED_TEXTS: [&str; 3] = ["\0", "a\0b", "a\0"];

pub async fn every_engine_keeps_the_same_texts_and_refuses_the_same(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let channel = |name: &str| Channel { name: name.to_owned(), app: scene.app, device };
    for (id, text) in (1_000..).zip(KEPT_TEXTS) {
        store.put_channel(text, &channel(text)).await.expect("kept");
        assert_eq!(channels(store, text).await, Ok(vec![channel(text)]), "{text:?}");
        let sent = UpstreamMessage { body: text.to_owned(), ..message(scene.app, device.raw(), id, text) };
        assert_eq!(store.keep_upstream(vec![sent]).await, Ok(vec![true]));
        store.change_upstream(scene.app, &[UpstreamId::from_raw(id)], bury(text)).await.expect("buried");
    }
    let dead = store.upstream(scene.app, UpstreamFilter::Dead, first(100), at(1)).await.expect("listed");
    let dead: Vec<_> = dead
        .iter()
        .map(|one| [&*one.key, &*one.body, one.dead_reason.as_deref().unwrap_or_default()])
        .collect();
    assert_eq!(dead, KEPT_TEXTS.map(|text| [text; 3]));
    let waiting = message(scene.app, device.raw(), 2_000, "waiting");
    store.keep_upstream(vec![waiting.clone()]).await.expect("kept");
    for text in REFUSED_TEXTS {
        let other = || message(scene.app, device.raw(), 2_001, "other");
        let [key, body] = [
            UpstreamMessage { key: text.to_owned(), ..other() },
            UpstreamMessage { body: text.to_owned(), ..other() },
        ];
        let refused = [
            store.put_channel("agent", &channel(text)).await,
            store.put_channel(text, &channel("name")).await,
            store.keep_upstream(vec![key]).await.map(drop),
            store.keep_upstream(vec![body]).await.map(drop),
            store.change_upstream(scene.app, &[waiting.id], bury(text)).await.map(drop),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(StoreError::Conflict(_))), "{text:?}: {refused:?}");
        }
    }
    assert_eq!(channels(store, "agent").await, Ok(Vec::new()));
}
