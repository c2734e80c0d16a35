//! Large messages of persons, which somebody else has to approve.

use reqwest::Method;
use serde_json::{Value, json};
use stentor_server::config::Config;

use super::issuer::{Issuer, SUBJECT};
use super::{Browser, Landing, with_issuer};
use crate::harness::{Read, Reading, Server, Tenant, server_with};

/// The subject of the second person.
const SECOND: &str = "the second person";

/// A server that wants an approval above one device, an app with two devices, and two persons who may send.
struct Office {
    server: Server,
    tenant: Tenant,
    first: Browser,
    second: Browser,
}

impl Office {
    async fn open() -> Self {
        let issuer = Issuer::start().await;
        let settings = |config: &mut Config| {
            with_issuer(&issuer)(config);
            config.console.unapproved_devices_max_count = 1;
        };
        let server = server_with(settings).await;
        let tenant = server.sender().await;
        server.device(&tenant, "one").await;
        server.device(&tenant, "two").await;
        let sender = format!("stentor:{}:sender", tenant.id);
        issuer.state.lock().claims = json!({"roles": [sender]});
        let first = logged_in(&server, &issuer).await;
        issuer.state.lock().claims = json!({"roles": [sender], "sub": SECOND});
        let second = logged_in(&server, &issuer).await;
        Self { server, tenant, first, second }
    }

    async fn post(&self, by: &Browser, path: &str, body: &Value) -> Read {
        let path = format!("{path}?app={}", self.tenant.id);
        by.change(&self.server, Method::POST, &path).await.json(body).read().await
    }

    /// Proposes a message to everyone and returns the id of the proposal.
    async fn propose(&self) -> String {
        let made = self.post(&self.first, "/v1/proposals", &json!({"message": to_everyone()})).await;
        assert_eq!((made.status, made.body["device_count"].clone()), (201, json!(2)), "{made:?}");
        assert_eq!((made.text("by"), made.text("person")), ("person".to_owned(), SUBJECT.to_owned()));
        made.text("id")
    }

    async fn approve(&self, by: &Browser, id: &str) -> Read {
        let path = format!("/v1/proposals/{id}/approve?app={}", self.tenant.id);
        by.change(&self.server, Method::POST, &path).await.read().await
    }
}

async fn logged_in(server: &Server, issuer: &Issuer) -> Browser {
    let mut browser = Browser::new();
    assert_eq!(browser.log_in(server, issuer).await, Landing::In);
    browser
}

fn to_everyone() -> Value {
    json!({"target": "everyone", "notification": {"title": "For all"}})
}

#[tokio::test]
async fn a_large_message_of_a_person_is_sent_once_a_second_person_approves_it() {
    let office = Office::open().await;
    let refused = office.post(&office.first, "/v1/messages", &to_everyone()).await;
    assert_eq!(refused.refusal(), (403, "approval_required".to_owned(), None), "{refused:?}");
    let id = office.propose().await;
    let own = office.approve(&office.first, &id).await;
    assert_eq!(own.refusal(), (403, "approval_required".to_owned(), None), "{own:?}");
    let listed = office.server.get(&office.tenant, "/v1/proposals").await;
    assert_eq!(listed["proposals"][0]["id"], id.as_str(), "{listed}");
    let approved = office.approve(&office.second, &id).await;
    assert_eq!(approved.status, 200, "{approved:?}");
    let sent = approved.text("sent");
    office.server.ended(&office.tenant, &sent).await;
    let ledger = office.server.get(&office.tenant, &format!("/v1/messages/{sent}/ledger")).await;
    assert_eq!(ledger["totals"]["accepted"], 2, "{ledger}");
    let again = office.approve(&office.second, &id).await;
    assert_eq!((again.status, again.text("sent")), (200, sent), "a repeat changes nothing");
    let listed = office.server.get(&office.tenant, "/v1/proposals").await;
    assert_eq!(listed["proposals"], json!([]));
    let trail = office.server.root(Method::GET, "/v1/audit?limit=9").read().await;
    let entries = trail.body["entries"].as_array().expect("entries").iter();
    let told: Vec<_> = entries
        .map(|entry| ["action", "person", "outcome"].map(|name| entry[name].as_str().unwrap_or_default()))
        .filter(|entry| entry[0].starts_with("proposal."))
        .collect();
    assert_eq!(
        told,
        [
            ["proposal.approve", SECOND, "done"],
            ["proposal.approve", SUBJECT, "refused"],
            ["proposal.create", SUBJECT, "done"],
        ]
    );
}

#[tokio::test]
async fn no_other_way_of_a_person_leads_past_the_approval() {
    let office = Office::open().await;
    let device = office.server.device(&office.tenant, "one").await;
    let to_one = json!({"target": {"device": device}, "data": {"k": "v"}});
    let sent = office.post(&office.first, "/v1/messages", &to_one).await;
    assert_eq!(sent.status, 202, "a small message needs none: {sent:?}");
    let schedule = |message: &Value| json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": message});
    let scheduled = office.post(&office.first, "/v1/schedules", &schedule(&to_one)).await;
    assert_eq!(scheduled.status, 201, "{scheduled:?}");
    // Nobody listens yet, but somebody may at that time.
    let to_topic = json!({"target": {"topic": "news"}, "data": {"k": "v"}});
    let topic = json!({"devices": [device]});
    office.server.post(&office.tenant, "/v1/topics/news/subscriptions", topic).await;
    let tomorrow = (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24)).to_string();
    let later = |target: Value| json!({"target": target, "data": {"k": "v"}, "send_at": tomorrow});
    let user = office.server.send(&office.tenant, Method::PUT, "/v1/users/anna").read().await;
    assert!(user.status < 300, "{user:?}");
    let sent = office.post(&office.first, "/v1/messages", &later(json!({"device": device}))).await;
    assert_eq!(sent.status, 202, "nobody can join a device: {sent:?}");
    for (path, body) in [
        ("/v1/messages", later(json!({"topic": "news"}))),
        ("/v1/messages", later(json!({"user": "anna"}))),
        ("/v1/messages/bulk", json!({"messages": [to_everyone()]})),
        ("/v1/schedules", schedule(&to_topic)),
        ("/v1/schedules", schedule(&to_everyone())),
    ] {
        let refused = office.post(&office.first, path, &body).await;
        assert_eq!(
            refused.refusal(),
            (403, "approval_required".to_owned(), None),
            "{path} {body}: {refused:?}"
        );
    }
    let now = office.post(&office.first, "/v1/messages", &to_topic).await;
    assert_eq!(now.status, 202, "one device: {now:?}");
}

#[tokio::test]
async fn keys_send_without_an_approval_and_may_ask_for_one() {
    let office = Office::open().await;
    let sent = office.server.post(&office.tenant, "/v1/messages", to_everyone()).await;
    assert!(sent["id"].is_string(), "{sent}");
    let made = office.server.post(&office.tenant, "/v1/proposals", json!({"message": to_everyone()})).await;
    let id = made["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/proposals/{id}/approve");
    let own = office.server.send(&office.tenant, Method::POST, &path).read().await;
    assert_eq!(own.refusal(), (403, "approval_required".to_owned(), None), "{own:?}");
    let approved = office.approve(&office.second, &id).await;
    assert_eq!(approved.status, 200, "{approved:?}");
}

#[tokio::test]
async fn a_rejected_proposal_cannot_be_approved_and_a_dry_run_is_none() {
    let office = Office::open().await;
    let id = office.propose().await;
    let path = format!("/v1/proposals/{id}?app={}", office.tenant.id);
    let gone = office.second.change(&office.server, Method::DELETE, &path).await.read().await;
    assert_eq!(gone.status, 204, "{gone:?}");
    assert_eq!(office.approve(&office.second, &id).await.refusal(), (404, "not_found".to_owned(), None));
    let mut message = to_everyone();
    message["dry_run"] = json!(true);
    let refused = office.post(&office.first, "/v1/proposals", &json!({"message": message})).await;
    assert_eq!(refused.refusal(), (422, "invalid_field".to_owned(), Some("message.dry_run".to_owned())));
}

#[tokio::test]
async fn an_audience_that_has_grown_since_the_proposal_is_not_what_was_approved() {
    let office = Office::open().await;
    let id = office.propose().await;
    office.server.device(&office.tenant, "three").await;
    let refused = office.approve(&office.second, &id).await;
    assert_eq!(refused.refusal(), (409, "conflict".to_owned(), None), "{refused:?}");
}
