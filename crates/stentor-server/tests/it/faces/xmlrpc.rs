//! The XML-RPC face.

use stentor_wire::xmlrpc::{
    Call, RpcOutcome, calls_of_multicall, multicall, read_response, results_of_multicall, write_call,
};
use stentor_wire::{DocumentLimits, Value};

use crate::harness::{Server, server};

fn record(fields: &[(&str, Value)]) -> Value {
    Value::Record(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn call_of(method: &str, fields: &[(&str, Value)]) -> Call {
    Call { method: method.into(), params: vec![record(fields)] }
}

/// Sends a document like a client that knows only a name and a password.
async fn post(server: &Server, key: &str, document: Vec<u8>) -> RpcOutcome {
    let request = server.client.post(format!("{}/rpc", server.url)).basic_auth("stentor", Some(key));
    let response = request.header("content-type", "text/xml").body(document).send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 200);
    let bytes = response.bytes().await.expect("a body");
    read_response(&bytes, &DocumentLimits::default()).expect("a response of XML-RPC")
}

async fn ask(server: &Server, key: &str, method: &str, fields: &[(&str, Value)]) -> RpcOutcome {
    post(server, key, write_call(&call_of(method, fields)).expect("a document")).await
}

#[tokio::test]
async fn a_device_is_registered_and_reached_and_the_ledger_is_read() {
    let server = server().await;
    let tenant = server.sender().await;
    let device = [
        ("platform", "android".into()),
        ("token", "token-of-a-phone-1".into()),
        ("topics", Value::List(vec!["news".into()])),
    ];
    let registered = ask(&server, &tenant.key, "devices.register", &device).await.expect("registered");
    assert_eq!(registered.get("created"), Some(&Value::Bool(true)));
    let message = [
        ("target", record(&[("topic", "news".into())])),
        ("data", record(&[("k", "v".into())])),
        ("ttl_seconds", Value::Int(60)),
        ("idempotency_key", "once".into()),
    ];
    let sent = ask(&server, &tenant.key, "messages.send", &message).await.expect("sent");
    let id = |sent: &Value| sent.get("accepted").and_then(|one| one.get("id")).cloned().expect("an id");
    let again = ask(&server, &tenant.key, "messages.send", &message).await.expect("sent");
    assert_eq!((id(&sent), again.get("replayed")), (id(&again), Some(&Value::Bool(true))));
    let ledger = ask(&server, &tenant.key, "messages.ledger", &[("message", id(&sent))]).await;
    assert!(ledger.expect("a ledger").get("totals").is_some());
}

#[tokio::test]
async fn a_message_sent_through_rest_is_recognised_when_it_is_repeated_here() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = serde_json::json!({"target": "everyone", "data": {"k": "v"}});
    let request =
        server.send(&tenant, reqwest::Method::POST, "/v1/messages").header("idempotency-key", "same");
    let first = {
        use crate::harness::Reading;
        request.json(&body).read().await
    };
    let fields = [
        ("target", "everyone".into()),
        ("data", record(&[("k", "v".into())])),
        ("idempotency_key", "same".into()),
    ];
    let again = ask(&server, &tenant.key, "messages.send", &fields).await.expect("sent");
    let id = again.get("accepted").and_then(|one| one.get("id")).and_then(Value::as_text).map(str::to_owned);
    assert_eq!(id.as_deref(), first.body["id"].as_str());
    assert_eq!(again.get("replayed"), Some(&Value::Bool(true)));
}

#[tokio::test]
async fn refusals_are_faults_that_name_code_and_field() {
    let server = server().await;
    let tenant = server.sender().await;
    let fault = |outcome: RpcOutcome| outcome.expect_err("a fault");
    let wrong_key = fault(ask(&server, "sk_wrong", "topics.list", &[]).await);
    assert_eq!(wrong_key.code, 6);
    assert!(wrong_key.text.starts_with("unauthorized: "), "{wrong_key}");
    let bad = fault(
        ask(&server, &tenant.key, "devices.register", &[("platform", "vms".into()), ("token", "t".into())])
            .await,
    );
    assert_eq!(bad.code, 2);
    assert!(bad.text.starts_with("invalid_field at platform: "), "{bad}");
    let unknown =
        fault(ask(&server, &tenant.key, "devices.show", &[("device", "dev_0000000000009".into())]).await);
    assert_eq!(unknown.code, 8);
    let missing = fault(ask(&server, &tenant.key, "devices.show", &[]).await);
    assert!(missing.text.starts_with("invalid_field at device: "), "{missing}");
    assert_eq!(fault(ask(&server, &tenant.key, "no.such", &[]).await).code, -32601);
    let broken = fault(post(&server, &tenant.key, b"<methodCall><methodName>".to_vec()).await);
    assert_eq!(broken.code, 1);
    let entity =
        b"<!DOCTYPE x [<!ENTITY e 'x'>]><methodCall><methodName>&e;</methodName></methodCall>".to_vec();
    assert_eq!(fault(post(&server, &tenant.key, entity).await).code, 1);
}

#[tokio::test]
async fn several_calls_in_one_are_answered_each_for_itself() {
    let server = server().await;
    let tenant = server.sender().await;
    let calls = [
        call_of("users.put", &[("external_id", "anna".into())]),
        call_of("users.show", &[("external_id", "nobody".into())]),
        call_of("users.show", &[("external_id", "anna".into())]),
    ];
    let packed = multicall(&calls);
    assert_eq!(calls_of_multicall(&packed).expect("calls").len(), 3);
    let answer = post(&server, &tenant.key, write_call(&packed).expect("a document")).await.expect("results");
    let results = results_of_multicall(&answer).expect("results");
    assert!(results[0].is_ok() && results[2].is_ok());
    assert_eq!(results[1].as_ref().expect_err("a fault").code, 8);
}

#[tokio::test]
async fn methods_say_what_they_take() {
    let server = server().await;
    let tenant = server.sender().await;
    let ask = |method: &'static str, params: Vec<Value>| {
        let document = write_call(&Call { method: method.into(), params }).expect("a document");
        post(&server, &tenant.key, document)
    };
    let Ok(Value::List(names)) = ask("system.listMethods", vec![]).await else { panic!("no list") };
    assert!(names.contains(&"messages.send".into()) && names.contains(&"system.multicall".into()));
    for name in names {
        let help = ask("system.methodHelp", vec![name.clone()]).await.expect("a help");
        assert!(help.as_text().is_some_and(|text| text.len() > 10), "{name:?}");
        assert!(matches!(ask("system.methodSignature", vec![name]).await, Ok(Value::List(_))));
    }
}
