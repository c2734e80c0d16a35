use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::message::{Content, Notification};
use stentor_core::target::Target;
use stentor_gateway::client::McsClientEvent;
use stentor_storage::conformance::scene::{Draft, Scene};

use super::program::{Program, end, event, heard, message, persistent, value};
use crate::room::{Room, to};

#[tokio::test]
async fn a_message_arrives_with_its_data_and_is_delivered_when_it_is_acknowledged() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let device = program.device(&program.register(room.app, "wp:a#1").await).await.device;
    let mut client = program.connect().await;
    heard(&mut client).await;
    let content = Content {
        notification: Some(Notification { title: Some("T".to_owned()), ..Notification::default() }),
        data: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        ..Content::default()
    };
    let sent = room.send_content(to(&[device]).collapsing("score"), &content).await;
    let got = message(&mut client).await;
    assert_eq!(
        (persistent(&got), got.from.as_str()),
        (sent.to_string(), room.app.raw().to_string().as_str())
    );
    assert_eq!((got.category.as_str(), got.token.as_deref()), ("org.chromium.linux", Some("score")));
    assert_eq!(value(&got, "subtype"), Some("wp:a#1"));
    assert_eq!((value(&got, "k"), value(&got, "gcm.notification.title")), (Some("v"), Some("T")));
    heard(&mut client).await;
    assert_eq!(room.delivered(sent).await, 0, "it was received, and nobody has acknowledged it");
    client.acknowledge(&[persistent(&got)]).await.expect("said");
    heard(&mut client).await;
    room.gateway.flush().await;
    assert_eq!(room.delivered(sent).await, 1);
}

#[tokio::test]
async fn bytes_that_an_app_server_has_encrypted_arrive_as_they_are() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let device = program.device(&program.register(room.app, "wp:a#1").await).await.device;
    let mut client = program.connect().await;
    heard(&mut client).await;
    let own = json!({"raw": "AQI", "encoding": "aes128gcm"});
    let own = own.as_object().expect("an object").clone();
    let overrides = BTreeMap::from([(ProviderKind::Gateway, own)]);
    room.send_content(to(&[device]), &Content { overrides, ..Content::default() }).await;
    let got = message(&mut client).await;
    assert_eq!(got.raw_data.as_deref(), Some(&[1, 2][..]));
    assert_eq!(value(&got, "content-encoding"), Some("aes128gcm"));
}

#[tokio::test]
async fn the_number_of_a_stanza_confirms_all_that_came_before_it() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let device = program.device(&program.register(room.app, "one").await).await.device;
    let (one, two) = (room.send(to(&[device])).await, room.send(to(&[device])).await);
    let mut client = program.connect().await;
    for sent in [one, two] {
        assert_eq!(persistent(&message(&mut client).await), sent.to_string());
    }
    client.acknowledge_all().await.expect("said");
    heard(&mut client).await;
    room.gateway.flush().await;
    assert_eq!((room.delivered(one).await, room.delivered(two).await), (1, 1));
}

#[tokio::test]
async fn what_a_device_says_at_its_return_to_have_got_is_not_given_again() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let device = program.device(&program.register(room.app, "one").await).await.device;
    let (one, two) = (room.send(to(&[device])).await, room.send(to(&[device])).await);
    let mut client = program.connect().await;
    assert_eq!(persistent(&message(&mut client).await), one.to_string());
    drop(client);
    let mut login = program.login();
    login.received = vec![one.to_string(), "0:1234%5678".to_owned()];
    let mut client = program.connect_with(login).await.expect("let in");
    assert_eq!(persistent(&message(&mut client).await), two.to_string());
    room.gateway.flush().await;
    assert_eq!((room.delivered(one).await, room.delivered(two).await), (1, 0));
}

#[tokio::test]
async fn one_connection_serves_all_that_a_program_has_registered() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let mut devices = Vec::new();
    for subtype in ["one", "two"] {
        devices.push(program.device(&program.register(room.app, subtype).await).await.device);
    }
    let mut client = program.connect().await;
    let everyone = room.send(Draft::to(Target::Everyone).ttl(1_000)).await;
    let got = [message(&mut client).await, message(&mut client).await];
    let subtypes: BTreeSet<_> = got.iter().filter_map(|data| value(data, "subtype")).collect();
    assert_eq!(subtypes, BTreeSet::from(["one", "two"]));
    let expected: BTreeSet<_> = devices.iter().map(|device| format!("{everyone}:{device}")).collect();
    assert_eq!(got.iter().map(persistent).collect::<BTreeSet<_>>(), expected);
    client.acknowledge(&[persistent(&got[0])]).await.expect("said");
    heard(&mut client).await;
    room.gateway.flush().await;
    assert_eq!(room.delivered(everyone).await, 1, "each is acknowledged for itself");
    drop(client);
    let mut login = program.login();
    login.received = vec![persistent(&got[1])];
    heard(&mut program.connect_with(login).await.expect("let in")).await;
    room.gateway.flush().await;
    assert_eq!(room.delivered(everyone).await, 2);
}

#[tokio::test]
async fn what_is_registered_while_a_program_is_connected_is_served_at_once() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let mut client = program.connect().await;
    heard(&mut client).await;
    let token = program.register(room.app, "late").await;
    let device = program.device(&token).await.device;
    let sent = room.send(to(&[device])).await;
    assert_eq!(persistent(&message(&mut client).await), sent.to_string());
    // Another app, and the end of a registration.
    let other = Scene::in_app(room.store.as_ref(), 3).await.app;
    assert_eq!(other, AppId::from_raw(3));
    program.register(other, "other").await;
    heard(&mut client).await;
    program
        .ask(&format!("app=org.chromium.linux&X-subtype=late&sender={}&delete=true", room.app.raw()))
        .await;
    heard(&mut client).await;
    assert!(!room.gateway.is_connected(device));
    assert!(room.gateway.holder(&token).await.is_err());
}

#[tokio::test]
async fn a_device_that_its_app_removes_is_served_no_more_and_the_others_are() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let gone = program.device(&program.register(room.app, "gone").await).await;
    let remaining = program.device(&program.register(room.app, "kept").await).await;
    let mut client = program.connect().await;
    heard(&mut client).await;
    room.gateway.withdraw(gone).await.expect("removed");
    let sent = room.send(to(&[remaining.device])).await;
    assert_eq!(value(&message(&mut client).await, "subtype"), Some("kept"));
    heard(&mut client).await;
    assert!(!room.gateway.is_connected(gone.device));
    assert_eq!(room.delivered(sent).await, 0);
}

#[tokio::test]
async fn a_device_for_which_too_much_waits_is_told_that_it_was_deleted() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let device = program.device(&program.register(room.app, "one").await).await.device;
    let count = stentor_gateway::limits::PENDING_MAX_COUNT + 1;
    for _ in 0..count {
        room.send(to(&[device])).await;
    }
    let mut client = program.connect().await;
    assert_eq!(event(&mut client).await, McsClientEvent::Deleted(count));
}

#[tokio::test]
async fn no_more_is_written_than_the_window_until_some_is_acknowledged() {
    let room = Room::new().await;
    let mut program = Program::check_in(&room.gateway);
    program.limits.window_max_count = 2;
    let device = program.device(&program.register(room.app, "one").await).await.device;
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.push(room.send(to(&[device])).await.to_string());
    }
    let mut client = program.connect().await;
    let mut got = Vec::new();
    while got.len() < 5 {
        let some = [message(&mut client).await];
        got.push(persistent(&some[0]));
        if got.len() % 2 == 0 {
            heard(&mut client).await;
            client.acknowledge_all().await.expect("said");
        }
    }
    assert_eq!(got, sent);
}

#[tokio::test]
async fn a_device_that_reads_nothing_is_cut_off_and_loses_nothing() {
    let room = Room::new().await;
    let mut program = Program::check_in(&room.gateway);
    program.limits.write_timeout = std::time::Duration::from_millis(50);
    let device = program.device(&program.register(room.app, "one").await).await.device;
    program.pipe_bytes = 128;
    for _ in 0..50 {
        room.send(to(&[device])).await;
    }
    let mut stuck = program.connect().await;
    while room.gateway.is_connected(device) {
        tokio::task::yield_now().await;
    }
    end(&mut stuck).await;
    // A client that reads and writes at the same time is not stuck, even over a tiny buffer.
    program.limits.write_timeout = std::time::Duration::from_secs(10);
    let mut client = program.connect().await;
    for _ in 0..50 {
        let id = persistent(&message(&mut client).await);
        client.acknowledge(&[id]).await.expect("said");
    }
}
