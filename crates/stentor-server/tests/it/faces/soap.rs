//! The SOAP face.

use stentor_wire::DocumentLimits;
use stentor_wire::soap::{self, SoapBody, SoapFault, SoapFaultCode, Version};
use stentor_wire::xml::dom::Element;

use crate::harness::{Reading, Server, server};

const NAMESPACE: &str = "urn:stentor:v1";
const EVERYONE: &str = "<target><everyone>true</everyone></target>\
                        <data><entry><key>k</key><value>v</value></entry></data>";

/// Wraps a body, and perhaps header blocks, in an envelope.
fn envelope(version: Version, headers: &str, body: &str) -> String {
    let namespace = version.namespace();
    format!(
        "<s:Envelope xmlns:s='{namespace}'><s:Header>{headers}</s:Header><s:Body>{body}</s:Body></s:Envelope>"
    )
}

fn called(name: &str, inside: &str) -> String {
    format!("<{name} xmlns='{NAMESPACE}'>{inside}</{name}>")
}

/// Posts a document like a client that knows only a name and a password; returns status and envelope.
async fn post(server: &Server, key: &str, version: Version, document: String) -> (u16, soap::Envelope) {
    let request = server.client.post(format!("{}/soap", server.url)).basic_auth("stentor", Some(key));
    let request = request.header("content-type", version.content_type("")).body(document);
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let kind = response.headers()["content-type"].to_str().expect("text").to_owned();
    let bytes = response.bytes().await.expect("a body");
    let read = soap::read(&bytes, &DocumentLimits::default(), &[]).expect("an envelope");
    assert_eq!(kind, read.version.content_type(""));
    (status, read)
}

async fn ask(server: &Server, key: &str, name: &str, inside: &str) -> Result<Element, SoapFault> {
    let document = envelope(Version::V12, "", &called(name, inside));
    let (status, read) = post(server, key, Version::V12, document).await;
    match read.body {
        SoapBody::Elements(mut elements) => {
            assert_eq!((status, elements.len()), (200, 1));
            assert!(elements[0].is(NAMESPACE, &format!("{name}Response")), "{elements:?}");
            Ok(elements.remove(0))
        }
        SoapBody::Fault(fault) => {
            let wanted = if fault.code == SoapFaultCode::Sender { 400 } else { 500 };
            assert_eq!(status, wanted);
            Err(fault)
        }
    }
}

fn text(element: &Element, path: &str) -> String {
    let found = path.split('/').try_fold(element, |element, name| element.element(name));
    found.unwrap_or_else(|| panic!("no {path} in {element:?}")).text()
}

/// Returns code and field of a refusal.
fn refusal(refusal: &Element) -> (String, Option<String>) {
    assert!(refusal.is(NAMESPACE, "Refusal"), "{refusal:?}");
    assert!(!text(refusal, "detail").is_empty() && !text(refusal, "request_id").is_empty());
    (text(refusal, "code"), refusal.element("field").map(Element::text))
}

fn refused(result: Result<Element, SoapFault>) -> (String, Option<String>) {
    refusal(&result.expect_err("a fault").detail[0])
}

fn word(code: &str, field: &str) -> (String, Option<String>) {
    (code.to_owned(), Some(field.to_owned()).filter(|field| !field.is_empty()))
}

#[tokio::test]
async fn a_device_is_registered_and_reached_and_the_ledger_is_read() {
    let server = server().await;
    let tenant = server.sender().await;
    let device = "<topics>news</topics><token>token-of-a-phone-1</token><platform>android</platform>";
    let registered = ask(&server, &tenant.key, "RegisterDevice", device).await.expect("registered");
    assert_eq!(text(&registered, "return/created"), "true");
    let message = "<target><topic>news</topic></target><idempotency_key>once</idempotency_key>\
                   <data><entry><key>k</key><value>v</value></entry></data><ttl_seconds>60</ttl_seconds>";
    let sent = ask(&server, &tenant.key, "SendMessage", message).await.expect("sent");
    let again = ask(&server, &tenant.key, "SendMessage", message).await.expect("sent");
    let id = text(&sent, "return/accepted/id");
    assert_eq!(
        (id.clone(), text(&again, "return/replayed")),
        (text(&again, "return/accepted/id"), "true".to_owned())
    );
    let request = format!("<message>{id}</message>");
    let ledger = ask(&server, &tenant.key, "ShowMessageLedger", &request).await.expect("a ledger");
    assert!(ledger.element("return").is_some_and(|one| one.element("totals").is_some()), "{ledger:?}");
    let request = format!("<device>{}</device>", text(&registered, "return/id"));
    let removed = ask(&server, &tenant.key, "RemoveDevice", &request).await.expect("removed");
    assert_eq!(removed.children, []);
}

#[tokio::test]
async fn a_message_sent_through_rest_is_recognised_when_it_is_repeated_here() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = serde_json::json!({"target": "everyone", "data": {"k": "v"}});
    let request = server.send(&tenant, reqwest::Method::POST, "/v1/messages");
    let first = request.header("idempotency-key", "same").json(&body).read().await;
    let message = format!("<idempotency_key>same</idempotency_key>{EVERYONE}");
    let again = ask(&server, &tenant.key, "SendMessage", &message).await.expect("sent");
    assert_eq!(Some(text(&again, "return/accepted/id").as_str()), first.body["id"].as_str());
    assert_eq!(text(&again, "return/replayed"), "true");
}

#[tokio::test]
async fn refusals_are_faults_that_name_code_and_field() {
    let server = server().await;
    let (tenant, other) = (server.sender().await, server.sender().await);
    let key = tenant.key.as_str();
    assert_eq!(refused(ask(&server, "sk_wrong", "ListTopics", "").await), word("unauthorized", ""));
    let device = "<platform>vms</platform><token>t</token>";
    assert_eq!(refused(ask(&server, key, "RegisterDevice", device).await), word("invalid_field", "platform"));
    let late = format!("{EVERYONE}<ttl_seconds>soon</ttl_seconds>");
    assert_eq!(refused(ask(&server, key, "SendMessage", &late).await), word("invalid_field", "ttl_seconds"));
    let nested = "<target><tokn>x</tokn></target>";
    assert_eq!(refused(ask(&server, key, "SendMessage", nested).await), word("invalid_field", "target.tokn"));
    assert_eq!(refused(ask(&server, key, "ShowDevice", "").await), word("invalid_field", "device"));
    let foreign = format!("<device>{}</device>", server.device(&other, "token-of-another-app").await);
    assert_eq!(refused(ask(&server, key, "ShowDevice", &foreign).await), word("not_found", ""));
    assert_eq!(refused(ask(&server, key, "NoSuchThing", "").await), word("not_found", ""));
    let reused = format!("{EVERYONE}<idempotency_key>k</idempotency_key>");
    ask(&server, key, "SendMessage", &reused).await.expect("sent");
    let changed = format!("{reused}<ttl_seconds>9</ttl_seconds>");
    assert_eq!(refused(ask(&server, key, "SendMessage", &changed).await), word("idempotency_key_reused", ""));
}

#[tokio::test]
async fn each_version_is_answered_in_itself_with_the_statuses_of_its_specification() {
    let server = server().await;
    let tenant = server.sender().await;
    for (version, of_sender) in [(Version::V11, 500), (Version::V12, 400)] {
        let ask = |key: String, headers: &'static str, body: String| {
            let document = envelope(version, headers, &body);
            let server = &server;
            async move { post(server, &key, version, document).await }
        };
        let (status, read) = ask(tenant.key.clone(), "", called("ListTopics", "")).await;
        assert_eq!((status, read.version), (200, version));
        let (status, read) = ask("sk_wrong".into(), "", called("ListTopics", "")).await;
        assert_eq!((status, read.version), (of_sender, version));
        let unknown = "<h:Lock xmlns:h='urn:h' s:mustUnderstand='1'/>";
        let (status, read) = ask(tenant.key.clone(), unknown, called("ListTopics", "")).await;
        let SoapBody::Fault(fault) = read.body else { panic!("no fault") };
        assert_eq!((status, fault.code), (500, SoapFaultCode::MustUnderstand));
        let ignored = "<h:Hint xmlns:h='urn:h'/>";
        assert_eq!(ask(tenant.key.clone(), ignored, called("ListTopics", "")).await.0, 200);
    }
    let other = "<Envelope xmlns='urn:soap-of-the-future'><Body/></Envelope>".to_owned();
    let (status, read) = post(&server, &tenant.key, Version::V12, other).await;
    let SoapBody::Fault(fault) = read.body else { panic!("no fault") };
    assert_eq!((status, fault.code), (500, SoapFaultCode::VersionMismatch));
    let request = server.client.post(format!("{}/soap", server.url)).bearer_auth(&tenant.key);
    assert_eq!(request.json(&"{}").send().await.expect("an answer").status().as_u16(), 415);
}

#[tokio::test]
async fn several_operations_in_one_body_are_answered_each_for_itself() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = [
        called("PutUser", "<external_id>anna</external_id>"),
        called("ShowUser", "<external_id>nobody</external_id>"),
        called("NoSuchThing", ""),
        called("ShowUser", "<external_id>anna</external_id>"),
    ];
    let document = envelope(Version::V11, "", &body.concat());
    let (status, read) = post(&server, &tenant.key, Version::V11, document).await;
    let SoapBody::Elements(replies) = read.body else { panic!("a fault") };
    let names: Vec<_> = replies.iter().map(|reply| reply.name.as_str()).collect();
    assert_eq!(
        (status, names),
        (200, vec!["PutUserResponse", "ShowUserResponse", "UnknownResponse", "ShowUserResponse"])
    );
    for refused in [&replies[1], &replies[2]] {
        assert_eq!(refusal(refused.element("Refusal").expect("a refusal")), word("not_found", ""));
    }
    assert_eq!(text(&replies[3], "return/external_id"), "anna");
    for body in [String::new(), called("ListTopics", "").repeat(1_001)] {
        let (status, read) =
            post(&server, &tenant.key, Version::V12, envelope(Version::V12, "", &body)).await;
        assert!(matches!(read.body, SoapBody::Fault(_)) && status == 400);
    }
}

#[tokio::test]
async fn what_would_cost_much_to_read_is_refused() {
    let server = server().await;
    let tenant = server.sender().await;
    let deep = format!("{}{}", "<a>".repeat(200), "</a>".repeat(200));
    let around = |inside: &str| envelope(Version::V12, "", &called("SendMessage", inside));
    let attributes: String = (0..100).map(|at| format!(" a{at}=''")).collect();
    let long = "n".repeat(100_000);
    let documents = [
        "<!DOCTYPE x [<!ENTITY e 'x'>]><x>&e;</x>".to_owned(),
        around("<collapse_key>&undeclared;</collapse_key>"),
        around(&deep),
        around(&format!("<collapse_key{attributes}/>")),
        around(&"<topics/>".repeat(60_000)),
        around(&format!("<x:a xmlns:x='{long}'/>")),
        around("<collapse_key>"),
        String::new(),
    ];
    for document in documents {
        let shown: String = document.chars().take(300).collect();
        let (status, read) = post(&server, &tenant.key, Version::V12, document).await;
        let SoapBody::Fault(fault) = read.body else { panic!("{shown} is taken") };
        assert_eq!(status, 400, "{shown}");
        assert_eq!(refusal(&fault.detail[0]).0, "invalid_request", "{shown}");
    }
    let large = around(&format!("<collapse_key a='{}'/>", "x".repeat(2 << 20)));
    let (_, read) = post(&server, &tenant.key, Version::V12, large).await;
    let SoapBody::Fault(fault) = read.body else { panic!("no fault") };
    assert_eq!(refusal(&fault.detail[0]).0, "payload_too_large");
}

#[tokio::test]
async fn the_description_needs_no_key_and_names_where_it_was_found() {
    let server = server().await;
    let url = format!("{}/soap", server.url);
    let text = server.client.get(format!("{url}?WSDL")).send().await.expect("an answer");
    let text = text.text().await.expect("a document");
    let service =
        stentor_wire::wsdl::read(text.as_bytes(), &DocumentLimits::default()).expect("a description");
    assert_eq!((service.namespace.as_str(), service.address.as_str()), (NAMESPACE, url.as_str()));
    for facts in stentor_server::contract::table::OPERATIONS {
        assert!(service.operations.iter().any(|one| one.name == facts.type_name), "{}", facts.name);
    }
    assert_eq!(server.client.get(&url).send().await.expect("an answer").status().as_u16(), 405);
}
