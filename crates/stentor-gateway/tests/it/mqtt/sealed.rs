//! Devices that have registered a key.

use serde_json::{Value, json};
use stentor_core::device::DeviceKeys;
use stentor_core::ports::store::StoreError;
use stentor_wire::web_push::PushKeyPair;

use super::client::{Hello, MqttClient};
use crate::room::{Room, to};

#[tokio::test]
async fn a_device_with_keys_gets_nothing_that_others_can_read() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (identity, credentials) = room.device().await;
        let pair = PushKeyPair::generate().expect("keys");
        let keys = pair.public().expect("keys");
        room.gateway.put_device_keys(identity, Some(&keys)).await.expect("kept");
        let (mut client, _) = MqttClient::hello(&room, &Hello::new(version, &credentials)).await;
        client.subscribe("messages/#", 1).await;
        let message = room.send(to(&[identity.device])).await;
        let given = client.given().await;
        let clear: Value = serde_json::from_slice(&pair.open(&given.payload).expect("for it")).expect("JSON");
        assert_eq!((&clear["id"], &clear["notification"]["title"]), (&json!(message), &json!("Hello")));
        if version == 5 {
            let properties = String::from_utf8_lossy(&given.properties).into_owned();
            for word in ["encoding", "aes128gcm", "sealed_by", "server"] {
                assert!(properties.contains(word), "{properties:?}");
            }
        }
        client.acknowledge(&given).await;
        client.ping().await;
        room.gateway.flush().await;
        assert_eq!(room.delivered(message).await, 1);
    }
}

#[tokio::test]
async fn a_device_whose_keys_are_damaged_gets_nothing_in_clear() {
    let room = Room::new().await;
    let (identity, credentials) = room.device().await;
    let torn = DeviceKeys { p256dh: "BCVx".to_owned(), auth: String::new() };
    room.store.put_device_keys(room.app, identity.device, Some(&torn)).await.expect("kept");
    let keys = room.gateway.device_keys(identity).await;
    assert!(matches!(keys, Err(StoreError::Damaged(_))), "{keys:?}");
    let message = room.send(to(&[identity.device])).await;
    let (mut client, _) = MqttClient::hello(&room, &Hello::new(4, &credentials)).await;
    assert_eq!(client.packet().await, None, "it is closed without a message");
    room.gateway.flush().await;
    assert_eq!(room.delivered(message).await, 0);
}
