use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use stentor_core::id::{AppId, KeyId};
use stentor_core::limits::CHANNELS_PER_AGENT_MAX_COUNT;
use stentor_core::ports::store::{Channel, DeviceFilter, Page, StoreError};
use stentor_gateway::mcs::{self, McsRegistrar, McsWebCaller};
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::Scene;

use super::program::{KEY, OneKey, Program, heard, json_of, message, token_of, value};
use crate::room::{Room, to};

/// A registrar without keys.
struct NoKey;

#[async_trait]
impl McsRegistrar for NoKey {
    async fn key_of(&self, _: AppId, _: &str) -> Result<Option<KeyId>, StoreError> {
        Ok(None)
    }

    async fn may_register(&self, _: AppId, _: Option<KeyId>) -> Result<bool, StoreError> {
        Ok(false)
    }
}

/// An application server's key, as clients of FCM send Google's.
const SERVER_KEY: &str =
    "BDOU99-h67HcA6JeFXHbSNMu7e2yNNu3RzoMj8TM4W88jITfq7ZmPvIM1Iv-4_l2LxQcYwhqby2xGpWwzjfAnG4";

#[tokio::test]
async fn the_same_registration_again_has_the_same_token_and_another_has_another() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let one = program.register(room.app, "one").await;
    assert_eq!(program.register(room.app, "one").await, one);
    assert_ne!(program.register(room.app, "two").await, one);
    assert_ne!(Program::check_in(&room.gateway).register(room.app, "one").await, one);
}

#[tokio::test]
async fn what_may_not_register_is_told_so_in_the_words_of_gcm() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let closed = Scene::in_app(room.store.as_ref(), 4).await.app;
    let rows = [
        (format!("app=a&sender={}", closed.raw()), "Error=INVALID_SENDER"),
        ("app=a&sender=99999".to_owned(), "Error=INVALID_SENDER"),
        ("app=a".to_owned(), "Error=INVALID_PARAMETERS"),
        (format!("app=a%20b&sender={}", room.app.raw()), "Error=INVALID_PARAMETERS"),
        (String::new(), "Error=INVALID_PARAMETERS"),
    ];
    for (form, expected) in rows {
        assert_eq!(program.ask(&form).await.body, expected.as_bytes(), "{form}");
    }
    for header in [None, Some("AidLogin 1:2"), Some("")] {
        let reply = mcs::register(&room.gateway, &OneKey, header, b"app=a&sender=1").await;
        assert_eq!((reply.status, &reply.body[..]), (401, &b"Error=AUTHENTICATION_FAILED"[..]));
    }
}

async fn install(room: &Room, app: AppId, key: &str) -> (u16, Value) {
    let body =
        json!({"fid": "cAAAAAAAAAAAAAAAAAAAAA", "appId": "1:2:web:3", "authVersion": "FIS_v2"}).to_string();
    let project = app.raw().to_string();
    let reply = mcs::install(&room.gateway, &OneKey, &project, Some(key), body.as_bytes()).await;
    (reply.status, json_of(&reply))
}

#[tokio::test]
async fn an_installation_opens_an_app_to_programs_that_have_no_place_for_a_key() {
    let room = Room::new().await;
    let closed = Scene::in_app(room.store.as_ref(), 4).await.app;
    assert_eq!(install(&room, closed, "wrong").await.0, 401);
    let (status, made) = install(&room, closed, KEY).await;
    assert_eq!((status, made["fid"].as_str()), (200, Some("cAAAAAAAAAAAAAAAAAAAAA")));
    assert_eq!(made["authToken"]["expiresIn"], "604800s");
    let program = Program::check_in(&room.gateway);
    let auth = |made: &Value| made["token"].as_str().expect("a token").to_owned();
    let form = |auth: &str| format!("app=a&sender=4&X-Goog-Firebase-Installations-Auth={auth}");
    token_of(&program.ask(&form(&auth(&made["authToken"]))).await);
    let header = format!("FIS_v2 {}", made["refreshToken"].as_str().expect("a token"));
    let renewed = mcs::renew_installation(&room.gateway, &OneKey, "4", Some(&header)).await;
    token_of(&program.ask(&form(&auth(&json_of(&renewed)))).await);
    assert_eq!(mcs::renew_installation(&room.gateway, &OneKey, "5", Some(&header)).await.status, 401);
    assert_eq!(mcs::renew_installation(&room.gateway, &NoKey, "4", Some(&header)).await.status, 401);
    let login = format!("AidLogin {}:{}", program.android_id, program.security_token);
    let form_now = form(&auth(&made["authToken"]));
    let late = mcs::register(&room.gateway, &NoKey, Some(&login), form_now.as_bytes()).await;
    assert_eq!(late.body, b"Error=INVALID_SENDER", "the key that it was installed with is deleted");
    room.set_seconds(8 * 24 * 3_600);
    assert_eq!(program.ask(&form(&auth(&made["authToken"]))).await.body, b"Error=INVALID_SENDER");
}

fn web(token: &str, p256dh: &str, auth: &str) -> String {
    let endpoint = format!("https://fcm.googleapis.com/fcm/send/{token}");
    json!({"web": {"endpoint": endpoint, "p256dh": p256dh, "auth": auth, "applicationPubKey": null}})
        .to_string()
}

#[tokio::test]
async fn a_web_client_registers_with_nobody_first_and_then_with_an_app() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let form = format!("app=org.chromium.linux&X-subtype=wp:a%231&device=1&sender={SERVER_KEY}");
    let provisional = token_of(&program.ask(&form).await);
    assert!(room.gateway.holder(&provisional).await.is_err(), "it is no device of anybody's");
    let project = room.app.raw().to_string();
    let (_, made) = install(&room, room.app, KEY).await;
    let own = made["authToken"]["token"].as_str().expect("a token").to_owned();
    let register = async |key: &str, body: &str| {
        let caller = McsWebCaller { key: Some(key), installation: Some(own.as_str()) };
        mcs::register_web(&room.gateway, &OneKey, &project, caller, body.as_bytes()).await
    };
    let body = web(&provisional, SERVER_KEY, "AAAAAAAAAAAAAAAAAAAAAA==");
    assert_eq!(register("wrong", &body).await.status, 401);
    assert_eq!(register(KEY, "{}").await.status, 400);
    assert_eq!(register(KEY, &web(&format!("{provisional}x"), "", "")).await.status, 400);
    assert_eq!(register(KEY, &web(&provisional, "AAAA", "AAAA")).await.status, 400);
    let off_the_curve = URL_SAFE_NO_PAD.encode([&[4_u8][..], &[1; 64]].concat());
    let unusable = register(KEY, &web(&provisional, &off_the_curve, "AAAAAAAAAAAAAAAAAAAAAA==")).await;
    assert_eq!(unusable.status, 400, "what cannot be sealed for would go out in clear");
    let reply = register(KEY, &body).await;
    let token = json_of(&reply)["token"].as_str().expect("a token").to_owned();
    let again = register(KEY, &body).await;
    assert_eq!(json_of(&again)["token"], token.as_str());
    let device = program.device(&token).await.device;
    room.send(to(&[device])).await;
    let got = message(&mut program.connect().await).await;
    assert_eq!((value(&got, "subtype"), &got.from), (Some("wp:a#1"), &project));
    assert_eq!(value(&got, "content-encoding"), Some("aesgcm"), "its content is for the client's eyes");
    assert!(got.raw_data.is_some() && value(&got, "crypto-key").is_some_and(|key| key.starts_with("dh=")));
    let unregister = async |token: &str, installation: Option<&str>| {
        let caller = McsWebCaller { key: Some(KEY), installation };
        mcs::unregister_web(&room.gateway, &OneKey, &project, caller, token).await.status
    };
    // The same key and the same installation id, which anyone may have, are another installation.
    let (_, other) = install(&room, room.app, KEY).await;
    let other = other["authToken"]["token"].as_str().expect("a token");
    assert_eq!(unregister(&token, None).await, 401);
    assert_eq!(unregister(&token, Some(other)).await, 404);
    let foreign = Program::check_in(&room.gateway).register(room.app, "one").await;
    assert_eq!(unregister(&foreign, Some(&own)).await, 404, "it was not registered by this installation");
    assert!(room.gateway.holder(&token).await.is_ok() && room.gateway.holder(&foreign).await.is_ok());
    assert_eq!(unregister(&token, Some(&format!("FIS {own}"))).await, 200);
    assert!(room.gateway.holder(&token).await.is_err());
}

#[tokio::test]
async fn the_former_registration_of_web_clients_is_a_form() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let form = format!("app=org.chromium.linux&X-subtype=wp:a%231&device=1&sender={SERVER_KEY}");
    let provisional = token_of(&program.ask(&form).await);
    let form = format!(
        "authorized_entity={}&endpoint=https://fcm.googleapis.com/fcm/send/{provisional}&encryption_key={SERVER_KEY}&encryption_auth=AAAAAAAAAAAAAAAAAAAAAA",
        room.app.raw()
    );
    let reply = mcs::subscribe(&room.gateway, &OneKey, form.as_bytes()).await;
    let token = json_of(&reply)["token"].as_str().expect("a token").to_owned();
    assert_eq!(program.device(&token).await.app, room.app);
    assert_eq!(mcs::subscribe(&room.gateway, &OneKey, b"authorized_entity=x").await.status, 400);
}

#[tokio::test]
async fn what_a_program_ends_is_ended_and_nothing_else() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let (one, two) = (program.register(room.app, "one").await, program.register(room.app, "two").await);
    let reply = program.ask("app=org.chromium.linux&X-subtype=one&delete=true&scope=GCM&sender=*").await;
    assert_eq!(reply.body, b"token=org.chromium.linux");
    assert!(room.gateway.holder(&one).await.is_err() && room.gateway.holder(&two).await.is_ok());
    let reply = program.ask("app=org.chromium.linux&delete=true").await;
    assert_eq!(reply.body, b"deleted=org.chromium.linux");
    assert!(room.gateway.holder(&two).await.is_err());
    heard(&mut program.connect().await).await;
}

#[tokio::test]
async fn a_registration_that_finds_no_room_leaves_no_device_behind() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let token = program.register(room.app, "one").await;
    let device = room.gateway.holder(&token).await.expect("a device").device;
    let agent = format!("android-{:x}", program.android_id);
    // Names that are no registrations of this protocol, but count towards the limit.
    for number in 1..CHANNELS_PER_AGENT_MAX_COUNT {
        let channel = Channel { name: format!("{number}"), app: room.app, device };
        room.store.put_channel(&agent, &channel).await.expect("put");
    }
    let form = format!("app=a&sender={}&X-subtype=two", room.app.raw());
    assert_eq!(program.ask(&form).await.body, b"Error=TOO_MANY_REGISTRATIONS");
    let page = Page { after: 0, limit: 10 };
    let devices = room.store.devices(room.app, &DeviceFilter::default(), page).await.expect("listed");
    assert_eq!(devices.iter().map(|known| known.id).collect::<Vec<_>>(), [device]);
}
