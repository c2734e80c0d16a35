//! App servers of a connection server: their keys, and the outcomes of their messages.

use reqwest::Method;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use stentor_core::id::AppId;
use stentor_gateway::ccs::CcsLoginError;

use crate::harness::{Reading as _, server};

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

#[tokio::test]
async fn only_a_key_of_the_app_that_may_send_opens_it() {
    let server = server().await;
    let (tenant, other) = (server.sender().await, server.sender().await);
    let app: AppId = tenant.id.parse().expect("an id");
    let register = server.key(&tenant.id, &["register"]).await;
    for key in [other.key, register, "sk_none".to_owned()] {
        let refused = server.app_servers.log_in(app, &SecretString::from(key)).await;
        assert_eq!(refused.err(), Some(CcsLoginError::Refused));
    }
    let session = server.app_servers.log_in(app, &tenant.key.into()).await.expect("a session");
    assert_eq!(session.app(), app);
}

#[tokio::test]
async fn a_key_that_is_removed_opens_nothing_any_more() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = json!({"name": "an app server", "scopes": ["send"]});
    let path = format!("/v1/apps/{}/keys", tenant.id);
    let key = server.root(Method::POST, &path).json(&body).read().await;
    let app = tenant.id.parse().expect("an id");
    let session = server.app_servers.log_in(app, &key.text("secret").into()).await.expect("a session");
    assert_eq!(session.still_allowed().await, Ok(()));
    let removed = server.root(Method::DELETE, &format!("{path}/{}", key.text("id"))).read().await;
    assert_eq!(removed.status, 204, "{removed:?}");
    assert_eq!(session.still_allowed().await, Err(CcsLoginError::Refused));
}

#[tokio::test]
async fn what_is_accepted_is_a_message_and_what_is_not_has_the_code_of_the_protocol() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-1").await;
    let app = tenant.id.parse().expect("an id");
    let key = server.key(&tenant.id, &["send"]).await;
    let session = server.app_servers.log_in(app, &key.into()).await.expect("a session");
    let sent = fields(json!({"to": "token-1", "message_id": "m-1", "data": {"k": "v"}, "time_to_live": 60,
        "delivery_receipt_requested": true}));
    assert_eq!(session.send(sent).await, Ok(()));
    let list = server.send(&tenant, Method::GET, "/v1/messages").read().await;
    assert_eq!(list.body["messages"].as_array().expect("a list").len(), 1, "{list:?}");
    for (wrong, code) in [
        (json!({"message_id": "m"}), "INVALID_JSON"),
        (json!({"to": "token-1", "time_to_live": -1}), "INVALID_JSON"),
        (json!({"to": "token-1", "data": {"from": "x"}}), "INVALID_JSON"),
        (json!({"to": "not a token"}), "BAD_REGISTRATION"),
        (json!({"to": "of-nobody", "data": {"k": "v"}}), "SENDER_ID_MISMATCH"),
    ] {
        let refused = session.send(fields(wrong.clone())).await.expect_err("a refusal");
        assert_eq!(refused.error, code, "{wrong}: {refused:?}");
    }
}
