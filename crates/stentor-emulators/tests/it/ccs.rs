//! CCS: streams, logins, questions, messages both ways, and how connections are drained.

use crate::app_server::{AppServer, HEAD, ccs, ccs_with, from_phone};
use crate::rig::{post, read};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stentor_emulators::device::TokenRegistration;
use stentor_emulators::{CcsConfig, CcsGeneration, CcsOptions, InjectedMessage};

#[tokio::test]
async fn a_sender_logs_in_with_and_without_domain_and_with_its_own_key_only() {
    let senders = BTreeMap::from([("4711".to_owned(), vec!["key".to_owned()])]);
    let vendor = CcsOptions { senders, ..CcsOptions::default() };
    let ccs = ccs_with(CcsConfig { vendor, ..CcsConfig::default() }).await;
    for name in ["4711", "4711@gcm.googleapis.com", "4711@fcm.googleapis.com"] {
        let mut server = AppServer::connect(&ccs).await;
        server.write(HEAD).await;
        let offered = server.until("</stream:features>").await;
        for mechanism in ["X-OAUTH2", "X-GOOGLE-TOKEN", "PLAIN"] {
            assert!(offered.contains(&format!("<mechanism>{mechanism}</mechanism>")), "{offered}");
        }
        assert!(server.log_in(name, "wrong").await.contains("<not-authorized/>"));
        assert!(server.log_in("4712", "key").await.contains("<not-authorized/>"));
        assert!(server.log_in(name, "key").await.contains("<success"));
        assert!(server.bind().await.contains("<jid>4711@gcm.googleapis.com/"));
    }
}

#[tokio::test]
async fn a_login_of_another_form_is_refused_and_the_fifth_failure_is_the_last() {
    let ccs = ccs(json!({})).await;
    let mut server = AppServer::connect(&ccs).await;
    server.open().await;
    let two = STANDARD.encode("a\0b");
    for (mechanism, content, condition) in [
        ("X-OAUTH2", "AA==", "invalid-mechanism"),
        ("PLAIN", "%%", "incorrect-encoding"),
        ("PLAIN", two.as_str(), "malformed-request"),
        ("PLAIN", "AAA=", "not-authorized"),
        ("SCRAM-SHA-1", "", "invalid-mechanism"),
    ] {
        assert!(server.auth(mechanism, content).await.contains(condition), "{mechanism} {content}");
    }
    assert_eq!(server.rest().await, "</stream:stream>");
}

#[tokio::test]
async fn what_is_no_stream_ends_with_a_stream_error() {
    let ccs = ccs(json!({})).await;
    for (text, condition) in [
        ("<stream xmlns='jabber:client'>", "invalid-namespace"),
        ("GET / HTTP/1.1\r\n\r\n", "not-well-formed"),
        ("<!DOCTYPE a><a>", "not-well-formed"),
    ] {
        let mut server = AppServer::connect(&ccs).await;
        server.write(text).await;
        let said = server.rest().await;
        assert!(
            said.starts_with("<?xml")
                && said.contains(&format!("<{condition} "))
                && said.ends_with("</stream:stream>"),
            "{text}: {said}"
        );
    }
    let mut server = AppServer::logged_in(&ccs).await;
    server.write(&format!("<message><gcm xmlns='google:mobile:data'>{}", "x".repeat(200_000))).await;
    assert!(server.rest().await.contains("<policy-violation "));
}

#[tokio::test]
async fn every_question_is_answered_and_ends_nothing() {
    let ccs = ccs(json!({})).await;
    let mut server = AppServer::logged_in(&ccs).await;
    for (kind, question, expected) in [
        ("set", "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'/>", "type='result'"),
        ("get", "<ping xmlns='urn:xmpp:ping'/>", "type='result'"),
        ("get", "<query xmlns='jabber:iq:roster'/>", "<query xmlns='jabber:iq:roster'/>"),
        ("get", "<query xmlns='http://jabber.org/protocol/disco#info'/>", "<identity "),
        ("get", "<query xmlns='http://jabber.org/protocol/disco#items'/>", "type='result'"),
        ("get", "<query xmlns='jabber:iq:version'/>", "<service-unavailable "),
        ("set", "", "<bad-request "),
    ] {
        let answer = server.ask(kind, question).await;
        assert!(answer.contains(expected) && answer.contains("id='q1'"), "{question}: {answer}");
    }
    server.write("<presence/><iq type='result' id='x'/><message><body>hello</body></message> \n").await;
    assert_eq!(server.deliver("abc", "m1").await["message_type"], "ack");
    server.write("</stream:stream>").await;
    assert_eq!(server.rest().await, "</stream:stream>");
}

#[tokio::test]
async fn a_message_is_acknowledged_counted_and_delivered() {
    let ccs = ccs(json!({})).await;
    let token = ccs.running.devices().register(TokenRegistration::default());
    let mut device = ccs.running.devices().listen(&token).unwrap();
    let mut server = AppServer::logged_in(&ccs).await;
    let ack = server.deliver(&token, "m-1").await;
    assert_eq!(ack, json!({"from": token, "message_id": "m-1", "message_type": "ack"}));
    assert_eq!(device.recv().await.unwrap().payload["data"]["k"], "v");
    server.send(&json!({"to": token, "message_id": "m-2", "dry_run": true})).await;
    assert_eq!(server.hear().await["message_type"], "ack");
    let counts = ccs.running.counts(&token);
    assert_eq!((counts.attempts, counts.accepted, counts.validate_only), (2, 1, 1));
    let new = ccs.running.devices().replace(&token, TokenRegistration::default()).unwrap();
    assert_eq!(server.deliver(&token, "m-3").await["registration_id"], new);
    let to_topic = server.deliver("/topics/news", "m-4").await;
    assert_eq!((&to_topic["message_type"], ccs.running.counts("/topics/news").accepted), (&json!("ack"), 1));
    assert_eq!(ccs.running.sums().wire.requests, 4);
}

#[tokio::test]
async fn the_payload_may_have_a_prefix_and_what_json_has_unescaped() {
    let ccs = ccs(json!({})).await;
    let mut server = AppServer::logged_in(&ccs).await;
    let text = r#"{"to":"abc", "message_id":"m-1", "time_to_live":"600", "data":{"k":"it's > that"}}"#;
    server
        .write(&format!("<message><data:gcm xmlns:data='google:mobile:data'>{text}</data:gcm></message>"))
        .await;
    assert_eq!(server.hear().await["message_id"], "m-1");
    server.say("<![CDATA[{\"to\":\"abc\",\"message_id\":\"<2>\"}]]>").await;
    assert_eq!(server.hear().await["message_id"], "<2>");
    assert_eq!(ccs.running.counts("abc").accepted, 2);
}

#[tokio::test]
async fn each_error_of_the_policy_is_a_nack_of_its_generation() {
    let codes = [
        ("INVALID_JSON", "INVALID_JSON"),
        ("BAD_REGISTRATION", "BAD_REGISTRATION"),
        ("DEVICE_UNREGISTERED", "DEVICE_UNREGISTERED"),
        ("SENDER_ID_MISMATCH", "BAD_REGISTRATION"),
        ("SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE"),
        ("INTERNAL_SERVER_ERROR", "INTERNAL_SERVER_ERROR"),
        ("DEVICE_MESSAGE_RATE_EXCEEDED", "DEVICE_MESSAGE_RATE_EXCEEDED"),
        ("TOPICS_MESSAGE_RATE_EXCEEDED", "TOPICS_MESSAGE_RATE_EXCEEDED"),
        ("CONNECTION_DRAINING", "CONNECTION_DRAINING"),
        ("INVALID_APNS_CREDENTIAL", "INVALID_APNS_CREDENTIAL"),
    ];
    let script = |code: &str| json!({"token": code, "then": {"error": {"code": code}}});
    let scripts: Vec<Value> = codes.iter().map(|(code, _)| script(code)).collect();
    for generation in [CcsGeneration::Gcm, CcsGeneration::Fcm] {
        let vendor = CcsOptions { generation, ..CcsOptions::default() };
        let policy = read(json!({ "scripts": scripts }));
        let ccs = ccs_with(CcsConfig { vendor, policy, ..CcsConfig::default() }).await;
        let mut server = AppServer::logged_in(&ccs).await;
        for (code, of_gcm) in codes {
            let nack = server.deliver(code, "m").await;
            let expected = if generation == CcsGeneration::Gcm { of_gcm } else { code };
            assert_eq!((&nack["message_type"], &nack["from"]), (&json!("nack"), &json!(code)));
            assert_eq!(nack["error"], expected);
            assert!(nack["error_description"].as_str().is_some_and(|text| !text.is_empty()), "{nack}");
            assert_eq!(ccs.running.counts(code).rejected, 1);
        }
    }
    let ccs = ccs(json!({})).await;
    assert!(ccs.running.set_policy(read(json!({ "scripts": [script("NotRegistered")] }))).is_err());
}

#[tokio::test]
async fn what_is_wrong_with_a_message_is_a_nack_if_it_has_an_id_and_a_stanza_error_if_not() {
    let ccs = ccs_with(CcsConfig { strict_tokens: true, ..CcsConfig::default() }).await;
    let dead = ccs.running.devices().register(TokenRegistration::default());
    ccs.running.devices().expire(&dead, None);
    let mut server = AppServer::logged_in(&ccs).await;
    for (body, code) in [
        (json!({}), "INVALID_JSON"),
        (json!({"to": 1}), "INVALID_JSON"),
        (json!({"to": "a", "time_to_live": -1}), "INVALID_JSON"),
        (json!({"to": "a", "data": {"from": "x"}}), "INVALID_JSON"),
        (json!({"to": "a", "data": {"k": "x".repeat(4096)}}), "INVALID_JSON"),
        (json!({"to": "a", "data": "text"}), "INVALID_JSON"),
        (json!({"to": "a", "message_type": "greeting"}), "INVALID_JSON"),
        (json!({"to": "b d"}), "BAD_REGISTRATION"),
        (json!({"to": "unknown"}), "BAD_REGISTRATION"),
        (json!({ "to": dead }), "DEVICE_UNREGISTERED"),
    ] {
        let mut body = body;
        body["message_id"] = json!("m-1");
        server.send(&body).await;
        let nack = server.hear().await;
        assert_eq!((&nack["error"], &nack["message_id"]), (&json!(code), &json!("m-1")), "{body}");
    }
    for text in [r#"{"to":"a"}"#, r#"{"to":"a","message_id":7}"#, "{&lt;", "[]", ""] {
        server.say(text).await;
        let error = server.until("</message>").await;
        assert!(error.starts_with("<message id='s1' type='error'"), "{error}");
        assert!(
            error.contains("<error code='400' type='modify'><bad-request ") && error.contains("InvalidJson")
        );
        assert!(error.contains(&text.replace('"', "&quot;")), "{error}");
    }
    assert_eq!(ccs.running.sums().tokens.accepted, 0);
}

#[tokio::test]
async fn a_hundred_messages_may_be_pending_and_no_more() {
    let ccs = ccs(json!({"stall": {"all": true}})).await;
    let mut server = AppServer::logged_in(&ccs).await;
    for number in 0..100 {
        server.send(&json!({"to": format!("t{number}"), "message_id": format!("m-{number}")})).await;
    }
    let nack = server.deliver("one-more", "m-100").await;
    assert_eq!((&nack["error"], &nack["message_id"]), (&json!("SERVICE_UNAVAILABLE"), &json!("m-100")));
    assert_eq!(ccs.running.sums().wire.refused, 1);
    assert_eq!((ccs.running.counts("t7").attempts, ccs.running.counts("t7").accepted), (1, 0));
    assert_eq!(ccs.connections()[0].downstream_pending, 100);
    ccs.running.set_policy(read(json!({}))).unwrap();
    for number in 0..100 {
        assert_eq!(server.hear().await["message_id"], format!("m-{number}"));
    }
    assert_eq!((ccs.running.counts("t7").accepted, ccs.running.counts("one-more").attempts), (1, 0));
}

#[tokio::test]
async fn answers_come_when_they_are_due_and_the_message_is_counted_before() {
    let ccs = ccs(json!({"latency": {"kind": "fixed", "ms": 60_000}})).await;
    let mut server = AppServer::logged_in(&ccs).await;
    server.send(&json!({"to": "abc", "message_id": "m-1"})).await;
    server.ping().await;
    assert_eq!(ccs.running.counts("abc").accepted, 1);
    assert!(!server.heard.contains("m-1"));
    let prompt = crate::app_server::ccs(json!({"latency": {"kind": "fixed", "ms": 20}})).await;
    let mut server = AppServer::logged_in(&prompt).await;
    assert_eq!(server.deliver("abc", "m-1").await["message_type"], "ack");
}

#[tokio::test]
async fn a_hundred_messages_of_devices_are_sent_before_one_is_acknowledged() {
    let ccs = ccs(json!({})).await;
    let mut server = AppServer::logged_in(&ccs).await;
    for number in 0..101 {
        let from = Some(format!("phone-{number}"));
        ccs.upstream(InjectedMessage { from, ..from_phone(&format!("u-{number}")) }).unwrap();
    }
    for number in 0..100 {
        assert_eq!(server.hear().await["message_id"], format!("u-{number}"));
    }
    server.ping().await;
    assert_eq!((ccs.upstream_totals().waiting, ccs.upstream_totals().unacked), (1, 100));
    server.acknowledge("u-50").await;
    assert_eq!(server.hear().await["message_id"], "u-100");
    assert_eq!((ccs.upstream_totals().acked, ccs.upstream_totals().unacked), (1, 100));
}

#[tokio::test]
async fn what_was_not_acknowledged_goes_to_the_next_connection_in_its_order() {
    let ccs = ccs(json!({})).await;
    let mut first = AppServer::logged_in(&ccs).await;
    for id in ["u-1", "u-2", "u-3"] {
        ccs.upstream(from_phone(id)).unwrap();
        assert_eq!(first.hear().await["data"]["k"], "v");
    }
    ccs.upstream(InjectedMessage { time_to_live: Some(0), ..from_phone("once") }).unwrap();
    assert_eq!(first.hear().await["message_id"], "once");
    let mut second = AppServer::logged_in(&ccs).await;
    second.acknowledge("u-2").await;
    let refused = second.hear().await;
    assert_eq!((&refused["message_type"], &refused["error"]), (&json!("nack"), &json!("BAD_ACK")));
    first.acknowledge("u-2").await;
    first.ping().await;
    drop(first);
    assert_eq!(second.hear().await["message_id"], "u-1");
    assert_eq!(second.hear().await["message_id"], "u-3");
    for id in ["u-1", "u-3"] {
        second.acknowledge(id).await;
    }
    second.ping().await;
    let totals = ccs.upstream_totals();
    assert_eq!(
        (totals.acked, totals.resent, totals.expired, totals.unacked, totals.waiting),
        (3, 2, 1, 0, 0)
    );
}

#[tokio::test]
async fn a_receipt_follows_and_wants_an_acknowledgement() {
    let ccs =
        ccs(json!({"scripts": [{"token": "gone", "then": {"error": {"code": "DEVICE_UNREGISTERED"}}}]}))
            .await;
    let mut server = AppServer::logged_in(&ccs).await;
    for (to, id) in [("gone", "m-1"), ("abc", "m-2")] {
        server.send(&json!({"to": to, "message_id": id, "delivery_receipt_requested": true})).await;
    }
    assert_eq!(server.hear().await["message_type"], "nack");
    assert_eq!(server.hear().await["message_type"], "ack");
    let receipt = server.hear().await;
    assert_eq!((&receipt["message_type"], &receipt["message_id"]), (&json!("receipt"), &json!("dr2:m-2")));
    let data = json!({"message_status": "MESSAGE_SENT_TO_DEVICE", "original_message_id": "m-2",
        "device_registration_id": "abc"});
    assert_eq!((&receipt["data"], &receipt["from"]), (&data, &json!("gcm.googleapis.com")));
    assert_eq!(ccs.upstream_totals().unacked, 1);
    server.acknowledge("dr2:m-2").await;
    server.ping().await;
    assert_eq!((ccs.upstream_totals().unacked, ccs.upstream_totals().acked), (0, 1));
}

#[tokio::test]
async fn a_connection_is_drained_answers_what_it_took_and_ends() {
    let ccs = ccs(json!({"stall": {"tokens": ["late"]}})).await;
    let mut server = AppServer::logged_in(&ccs).await;
    server.send(&json!({"to": "late", "message_id": "m-1"})).await;
    server.ping().await;
    let control = ccs.running.control_addr().unwrap();
    assert_eq!(post(control, "/fault", &json!({"fault": "goaway"})).await.0, 200);
    let frame = server.hear().await;
    assert_eq!(frame, json!({"message_type": "control", "control_type": "CONNECTION_DRAINING"}));
    let nack = server.deliver("abc", "m-2").await;
    assert_eq!((&nack["error"], &nack["from"]), (&json!("CONNECTION_DRAINING"), &json!("abc")));
    ccs.upstream(from_phone("u-1")).unwrap();
    server.ping().await;
    assert!(ccs.connections()[0].draining && ccs.upstream_totals().waiting == 1);
    ccs.running.set_policy(read(json!({}))).unwrap();
    let ack = server.hear().await;
    assert_eq!((&ack["message_type"], &ack["message_id"]), (&json!("ack"), &json!("m-1")));
    assert_eq!(server.rest().await, "</stream:stream>");
    let wire = ccs.running.sums().wire;
    assert_eq!((wire.goaways, wire.unprocessed, ccs.running.counts("abc").attempts), (1, 1, 0));
}

#[tokio::test]
async fn a_plan_drains_the_first_connections_only_and_may_close_them() {
    let ccs = ccs(json!({"goaway": {"after_requests": 2, "then": "close", "connections": 1}})).await;
    let mut first = AppServer::logged_in(&ccs).await;
    assert_eq!(first.deliver("a", "m-1").await["message_type"], "ack");
    assert_eq!(first.deliver("b", "m-2").await["message_type"], "ack");
    assert_eq!(first.hear().await["control_type"], "CONNECTION_DRAINING");
    assert_eq!(first.rest().await, "</stream:stream>");
    let mut second = AppServer::logged_in(&ccs).await;
    for id in ["m-3", "m-4", "m-5"] {
        assert_eq!(second.deliver("c", id).await["message_type"], "ack");
    }
}

#[tokio::test]
async fn a_connection_ends_when_its_life_is_over_and_the_next_one_has_a_life_of_its_own() {
    let ccs = ccs(json!({"life": {"min_ms": 300, "max_ms": 300, "then": "close"}})).await;
    for id in ["m-1", "m-2"] {
        let began = std::time::Instant::now();
        let mut server = AppServer::logged_in(&ccs).await;
        assert_eq!(server.deliver("abc", id).await["message_type"], "ack");
        assert_eq!(server.hear().await["control_type"], "CONNECTION_DRAINING");
        assert_eq!(server.rest().await, "</stream:stream>");
        assert!(began.elapsed() >= std::time::Duration::from_millis(300));
    }
    assert_eq!(ccs.running.sums().wire.goaways, 2);
}

#[tokio::test]
async fn a_reset_breaks_the_connection_off_and_leaves_the_message_uncounted() {
    let ccs = ccs(json!({})).await;
    let mut server = AppServer::logged_in(&ccs).await;
    post(ccs.running.control_addr().unwrap(), "/fault", &json!({"fault": "reset_next", "requests": 1})).await;
    server.send(&json!({"to": "abc", "message_id": "m-1"})).await;
    assert_eq!(server.rest().await, "");
    assert_eq!((ccs.running.counts("abc").attempts, ccs.running.sums().wire.resets), (0, 1));
    ccs.running.set_policy(read(json!({"resets": {"every": 1, "code": "internal_error"}}))).unwrap();
    let mut server = AppServer::logged_in(&ccs).await;
    server.send(&json!({"to": "abc", "message_id": "m-1"})).await;
    assert_eq!(server.rest().await, "");
    assert_eq!((ccs.running.counts("abc").attempts, ccs.running.counts("abc").accepted), (1, 0));
}

#[tokio::test]
async fn a_sender_has_so_many_connections_and_no_more() {
    let vendor = CcsOptions { max_connections: Some(1), ..CcsOptions::default() };
    let ccs = ccs_with(CcsConfig { vendor, ..CcsConfig::default() }).await;
    let first = AppServer::logged_in(&ccs).await;
    let mut second = AppServer::connect(&ccs).await;
    second.open().await;
    assert!(second.log_in("4711", "key").await.contains("<policy-violation "));
    let mut other = AppServer::connect(&ccs).await;
    other.open().await;
    assert!(other.log_in("4712", "key").await.contains("<success"));
    assert_eq!(ccs.connections().len(), 2);
    drop(first);
    while ccs.connections().len() == 2 {
        tokio::task::yield_now().await;
    }
    AppServer::logged_in(&ccs).await;
}

#[tokio::test]
async fn the_control_port_plays_a_device_and_shows_who_is_connected() {
    let ccs = ccs(json!({})).await;
    let control = ccs.running.control_addr().unwrap();
    let (status, sent) = post(control, "/upstream", &json!({"sender_id": "4711", "data": {"k": "v"}})).await;
    assert_eq!(status, 200);
    let mut server = AppServer::logged_in(&ccs).await;
    let heard = server.hear().await;
    assert_eq!(heard["message_id"], sent["message_id"]);
    assert!(heard["from"].as_str().is_some() && heard["category"] == "org.example.emulated");
    let get = async |path: &str| -> Value {
        reqwest::get(format!("http://{control}{path}")).await.unwrap().json().await.unwrap()
    };
    server.ping().await;
    let connections = get("/connections").await;
    assert_eq!(
        (&connections[0]["sender_id"], &connections[0]["upstream_unacked"]),
        (&json!("4711"), &json!(1))
    );
    assert_eq!(get("/upstream").await["unacked"], 1);
    assert_eq!(post(control, "/upstream", &json!({"data": {}})).await.0, 400);
    assert_eq!(
        post(control, "/upstream", &json!({"sender_id": "4711", "time_to_live": 2_419_201})).await.0,
        400
    );
    assert_eq!(post(control, "/upstream", &json!({"sender_id": "4711", "unknown": 1})).await.0, 400);
    for number in 0..20 {
        ccs.upstream(from_phone(&format!("u-{number}"))).unwrap();
    }
    let one_more = json!({"sender_id": "4711", "from": "phone"});
    assert_eq!(post(control, "/upstream", &one_more).await.0, 409);
    server.acknowledge("u-0").await;
    server.ping().await;
    assert_eq!(post(control, "/upstream", &one_more).await.0, 200);
}
