//! Topics by both interfaces, and the messages that subscribed devices receive.

use crate::rig::{self, post};
use serde_json::{Value, json};
use std::net::SocketAddr;
use stentor_emulators::RunningFcm;
use stentor_emulators::device::TokenRegistration;

const SEND: &str = "/v1/projects/p/messages:send";

async fn call(method: &str, address: SocketAddr, path: &str) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = reqwest::Client::new().request(method, format!("http://{address}{path}"));
    let reply = request.json(&json!({})).send().await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap())
}

fn subscriptions(token: &str) -> String {
    format!("/v1/projects/p/registrations/{token}/topicSubscriptions")
}

#[tokio::test]
async fn the_resource_is_created_read_listed_and_deleted() {
    let fcm = rig::fcm(json!({})).await;
    let (at, path) = (fcm.addr(), subscriptions("abc:1"));
    assert_eq!(call("POST", at, &format!("{path}?topicName=news")).await.0, 200);
    let (status, body) = call("POST", at, &format!("{path}?topic_name=news")).await;
    assert_eq!((status, &body["error"]["status"]), (409, &json!("ALREADY_EXISTS")));
    let (status, body) = call("GET", at, &format!("{path}/news")).await;
    assert_eq!(
        (status, &body["name"]),
        (200, &json!("projects/p/registrations/abc:1/topicSubscriptions/news"))
    );
    assert_eq!(call("PATCH", at, &format!("{path}/sport?allowMissing=true")).await.0, 200);
    assert_eq!(call("PATCH", at, &format!("{path}/other")).await.0, 404);
    let (_, list) = call("GET", at, &format!("{path}?pageSize=1")).await;
    assert_eq!(
        (list["topicSubscriptions"].as_array().unwrap().len(), &list["nextPageToken"]),
        (1, &json!("news"))
    );
    let (_, rest) = call("GET", at, &format!("{path}?pageToken=news")).await;
    assert_eq!((rest["topicSubscriptions"].as_array().unwrap().len(), rest.get("nextPageToken")), (1, None));
    assert_eq!(call("DELETE", at, &format!("{path}/news")).await.0, 200);
    assert_eq!(call("DELETE", at, &format!("{path}/news")).await.0, 404);
    assert_eq!(call("DELETE", at, &format!("{path}/news?allow_missing=true")).await.0, 200);
    assert_eq!(call("POST", at, &format!("{path}?topicName=no%20spaces")).await.0, 400);
}

#[tokio::test]
async fn the_batch_interface_answers_per_token() {
    let fcm = rig::fcm(json!({})).await;
    let dead = fcm.devices().register(TokenRegistration::default());
    fcm.devices().expire(&dead, None);
    let request = json!({"to": "/topics/news", "registration_tokens": ["good", "b d", dead]});
    let (status, body) = post(fcm.addr(), "/iid/v1:batchAdd", &request).await;
    let expected = json!({"results": [{}, {"error": "INVALID_ARGUMENT"}, {"error": "NOT_FOUND"}]});
    assert_eq!((status, body), (200, expected));
    let (_, info) = call("GET", fcm.addr(), "/iid/info/good?details=true").await;
    assert_eq!(info["rel"]["topics"]["news"]["addDate"].as_str().unwrap().len(), 10);
    let many = json!({"to": "/topics/news", "registration_tokens": vec!["a"; 1001]});
    assert_eq!(post(fcm.addr(), "/iid/v1:batchAdd", &many).await.0, 400);
    let request = json!({"to": "/topics/news", "registration_tokens": ["good"]});
    post(fcm.addr(), "/iid/v1:batchRemove", &request).await;
    let (_, info) = call("GET", fcm.addr(), "/iid/info/good?details=true").await;
    assert_eq!(info["rel"]["topics"], json!({}));
}

async fn subscribe(fcm: &RunningFcm, token: &str, topic: &str) {
    let path = format!("{}?topicName={topic}", subscriptions(token));
    assert_eq!(call("POST", fcm.addr(), &path).await.0, 200);
}

#[tokio::test]
async fn topic_and_condition_messages_reach_the_devices_that_are_in() {
    let fcm = rig::fcm(json!({})).await;
    let [first, second] = [0, 1].map(|_| fcm.devices().register(TokenRegistration::default()));
    subscribe(&fcm, &first, "a").await;
    subscribe(&fcm, &second, "a").await;
    subscribe(&fcm, &second, "b").await;
    let mut first = fcm.devices().listen(&first).unwrap();
    let mut second = fcm.devices().listen(&second).unwrap();
    let send = |target: &str, value: &str, text: &str| {
        let body = json!({"message": {target: value, "data": {"text": text}}});
        let address = fcm.addr();
        async move { assert_eq!(post(address, SEND, &body).await.0, 200) }
    };
    send("topic", "b", "one").await;
    send("condition", "'a' in topics && !('b' in topics)", "two").await;
    let text = |message: stentor_emulators::device::DeviceMessage| message.payload["data"]["text"].clone();
    assert_eq!(first.recv().await.map(text), Some(json!("two")));
    assert_eq!(second.recv().await.map(text), Some(json!("one")));
    assert_eq!(fcm.counts("/topics/b").accepted, 1);
}
