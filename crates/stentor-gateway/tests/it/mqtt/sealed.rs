//! Devices that have told of a key.

use serde_json::{Value, json};
use stentor_gateway::web_push::PushKeyPair;

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
