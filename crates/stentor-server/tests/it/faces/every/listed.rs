//! The error codes listed in the table of operations: each can be provoked, and is the same in every face.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};
use stentor_emulators::{ApnsConfig, ApnsEmulator, ApnsOptions, RunningApns};
use stentor_server::contract::table::OPERATIONS;

use super::super::socket;
use super::{EVERY_FACE, Through, ask, done};
use crate::harness::{Reading, Server, Tenant};
use crate::room;

const APPLE: &str = "https://api.push.apple.com";
/// Limit of schedules; one more is refused.
const SCHEDULES_MAX_COUNT: usize = 2;
const TOPICS_PER_DEVICE: usize = 2_000;
const GROUPS_PER_MEMBER: usize = 1_000;
const SERVICES_PER_APP: usize = 1_000;
const ACCOUNTS_PER_APP: usize = 100;

/// A request that is refused with a code.
struct ListedRefusal {
    operation: &'static str,
    code: &'static str,
    record: Value,
}

fn refusal(operation: &'static str, code: &'static str, record: Value) -> ListedRefusal {
    ListedRefusal { operation, code, record }
}

#[tokio::test]
async fn every_refusal_that_the_table_lists_can_be_had_and_is_the_same_everywhere() {
    let server = socket::socket_server(|config| {
        config.api.schedules_max_count = SCHEDULES_MAX_COUNT;
        config.pipeline.max_queued_chunks = room::ROOM;
    })
    .await;
    let management = Some(([127, 0, 0, 1], 0).into());
    let vendor = ApnsOptions { management, max_channels: 0, ..ApnsOptions::default() };
    let apns =
        ApnsEmulator::start(ApnsConfig { vendor, ..ApnsConfig::default() }).await.expect("an emulator");
    let mut had = BTreeSet::new();
    for (tenant, refusals) in [
        of_credentials(&server).await,
        of_devices(&server).await,
        of_members(&server).await,
        of_services(&server).await,
        of_channels(&server, &apns).await,
        of_accounts(&server).await,
        of_campaigns(&server).await,
        of_schedules(&server).await,
        of_proposals(&server).await,
        of_messages(&server).await,
        of_an_app_without_credential(&server).await,
        of_a_full_queue(&server).await,
    ] {
        for ListedRefusal { operation, code, record } in refusals {
            for through in EVERY_FACE {
                let refused = ask(through, &server, &tenant.key, operation, &record).await;
                let refused = refused.expect_err("a refusal");
                assert_eq!(refused.0, code, "{through:?} {operation} {record}: {refused:?}");
            }
            had.insert((operation, code));
        }
    }
    let listed: BTreeSet<_> = OPERATIONS
        .iter()
        .flat_map(|facts| facts.errors.iter().map(move |code| (facts.name, code.as_str())))
        // A precondition is sent in headers, which only REST has.
        .filter(|(_, code)| *code != "precondition_failed")
        .collect();
    // A schedule ends by itself no sooner than at the next full minute.
    had.insert(("schedules.cancel", "conflict"));
    // Persons alone need an approval, and they have sessions of the console: `oidc::approvals` has these.
    let of_persons = ["messages.send", "messages.send_many", "schedules.create"];
    had.extend(of_persons.map(|operation| (operation, "approval_required")));
    assert_eq!(had, listed);
}

type Refusals = (Tenant, Vec<ListedRefusal>);

async fn of_credentials(server: &Server) -> Refusals {
    let tenant = server.tenant().await;
    let named = |secret: Value| json!({"app": tenant.id, "provider": "apns", "credential": secret});
    let good = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
    let key = |endpoint: &str, key_p8: &str| {
        json!({"key_p8": key_p8, "key_id": "KEY0123456", "team_id": "TEAM012345",
            "bundle_id": "com.example.app", "endpoint": endpoint})
    };
    // Another app's, which has claimed it first.
    let senders = URL_SAFE_NO_PAD.encode([&[4][..], &[7; 64]].concat());
    let senders = json!({"vapid_key": senders});
    let other = server.tenant().await;
    let path = format!("/v1/apps/{}/credentials/gateway", other.id);
    assert_eq!(server.send(&other, Method::PUT, &path).json(&senders).read().await.status, 204);
    let taken = json!({"app": tenant.id, "provider": "gateway", "credential": senders});
    let refusals = vec![
        refusal("apps.put_credential", "conflict", taken),
        refusal("apps.put_credential", "address_refused", named(key("https://10.0.0.1", &good))),
        refusal("apps.put_credential", "credential_unusable", named(key(APPLE, "no key"))),
        // The metadata address of a cloud, which also serves keys.
        refusal(
            "apps.put_upstream_webhook",
            "address_refused",
            json!({"app": tenant.id, "url": "http://169.254.169.254/latest"}),
        ),
    ];
    (tenant, refusals)
}

async fn of_devices(server: &Server) -> Refusals {
    let tenant = server.sender().await;
    server.device(&tenant, "of-another").await;
    let topics: Vec<_> = (0..TOPICS_PER_DEVICE).map(|topic| format!("topic-{topic}")).collect();
    let full = json!({"platform": "android", "provider": "null", "token": "full", "topics": topics});
    let full = done(Through::Socket, server, &tenant.key, "devices.register", full).await["id"].clone();
    let more = |token: &str, extra: Value| {
        let mut record = json!({"platform": "android", "provider": "null", "token": token});
        record.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        record
    };
    let refusals = vec![
        refusal("devices.register", "limit_reached", more("full", json!({"topics": ["one-more"]}))),
        refusal(
            "devices.replace",
            "limit_reached",
            more("full", json!({"device": full, "topics": ["one-more"]})),
        ),
        refusal("devices.replace", "conflict", more("of-another", json!({"device": full}))),
        refusal("devices.change", "conflict", json!({"device": full, "token": "of-another"})),
        refusal("devices.subscribe", "limit_reached", json!({"device": full, "topic": "one-more"})),
        refusal("topics.subscribe", "limit_reached", json!({"topic": "one-more", "devices": [full]})),
    ];
    (tenant, refusals)
}

async fn of_members(server: &Server) -> Refusals {
    let tenant = server.tenant().await;
    let mut client = socket::client(server, &tenant.key).await;
    client.done("groups.put", json!({"group": "one-more"})).await;
    for group in 0..GROUPS_PER_MEMBER {
        let record = json!({"group": format!("group-{group}"), "users": ["anna"]});
        client.done("groups.put", json!({"group": record["group"]})).await;
        client.done("groups.add", record).await;
    }
    let more = json!({"group": "one-more", "users": ["anna"]});
    (tenant, vec![refusal("groups.add", "limit_reached", more)])
}

async fn of_services(server: &Server) -> Refusals {
    let tenant = server.tenant().await;
    let mut client = socket::client(server, &tenant.key).await;
    let service =
        |number: usize| json!({"service": format!("s-{number}"), "kind": "http", "address": "http://s"});
    for number in 0..SERVICES_PER_APP {
        client.done("services.publish", service(number)).await;
    }
    (tenant, vec![refusal("services.publish", "limit_reached", service(SERVICES_PER_APP))])
}

async fn of_channels(server: &Server, apns: &RunningApns) -> Refusals {
    let tenant = server.tenant().await;
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
    let management = apns.management_addr().expect("a second port");
    let credential = json!({"key_p8": key, "key_id": "KEY0123456", "team_id": "TEAM012345",
        "bundle_id": "com.example.app", "endpoint": format!("https://{}", apns.addr()),
        "management_endpoint": format!("https://{management}"), "ca_pem": apns.ca_pem().expect("TLS")});
    let record = json!({"app": tenant.id, "provider": "live_activity_channel", "credential": credential});
    done(Through::Rest, server, &tenant.key, "apps.put_credential", record).await;
    (tenant, vec![refusal("channels.create", "limit_reached", json!({}))])
}

async fn of_accounts(server: &Server) -> Refusals {
    let tenant = server.tenant().await;
    let account = json!({"app": tenant.id, "name": "an account", "url": "https://push.example"});
    let made = (0..ACCOUNTS_PER_APP)
        .map(|_| done(Through::Rest, server, &tenant.key, "apps.create_service_account", account.clone()));
    futures_util::future::join_all(made).await;
    (tenant, vec![refusal("apps.create_service_account", "limit_reached", account)])
}

async fn of_campaigns(server: &Server) -> Refusals {
    let tenant = server.sender().await;
    let message = json!({"target": "everyone", "data": {"k": "v"}});
    let sent = done(Through::Socket, server, &tenant.key, "messages.send", message).await;
    let id = sent["accepted"]["id"].as_str().expect("an id").to_owned();
    server.ended(&tenant, &id).await;
    let refusals = ["campaigns.cancel", "campaigns.pause", "campaigns.resume"];
    let refusals = refusals.map(|operation| refusal(operation, "conflict", json!({"campaign": id})));
    (tenant, refusals.into())
}

async fn of_schedules(server: &Server) -> Refusals {
    let tenant = server.sender().await;
    let schedule = |more: Value| {
        let mut record = json!({"cron": "0 9 * * *", "time_zone": "Europe/Rome",
            "message": {"target": {"topic": "news"}, "data": {"k": "v"}}});
        record.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        record
    };
    subscribed(server, &tenant).await;
    let mut client = socket::client(server, &tenant.key).await;
    let canceled = client.done("schedules.create", schedule(json!({}))).await["schedule"]["id"].clone();
    client.done("schedules.cancel", json!({"schedule": canceled})).await;
    for number in 0..SCHEDULES_MAX_COUNT {
        let key = format!("kept-{number}");
        client.done("schedules.create", schedule(json!({"idempotency_key": key}))).await;
    }
    let reused = json!({"idempotency_key": "kept-0", "name": "another"});
    let mut refusals = vec![
        refusal("schedules.create", "limit_reached", schedule(json!({}))),
        refusal("schedules.create", "idempotency_key_reused", schedule(reused)),
        refusal("schedules.create", "conflict", schedule(json!({"until": "2001-01-01T00:00:00Z"}))),
    ];
    let operations = ["schedules.pause", "schedules.resume"];
    refusals
        .extend(operations.map(|operation| refusal(operation, "conflict", json!({"schedule": canceled}))));
    (tenant, refusals)
}

/// Lets the root key propose a message of an app, so that the app's own key may approve it.
async fn proposed(server: &Server, tenant: &Tenant, target: Value) -> Value {
    let request = json!({"message": {"target": target, "data": {"k": "v"}}});
    let path = format!("/v1/proposals?app={}", tenant.id);
    let made = server.root(Method::POST, &path).json(&request).read().await;
    assert_eq!(made.status, 201, "{made:?}");
    json!({"proposal": made.text("id")})
}

async fn of_proposals(server: &Server) -> Refusals {
    let tenant = server.sender().await;
    subscribed(server, &tenant).await;
    let message = |more: Value| {
        let mut message = json!({"target": {"topic": "news"}, "data": {"k": "v"}});
        message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"message": message})
    };
    let orphan = proposed(server, &tenant, json!({"topic": "news"})).await;
    let own = done(Through::Socket, server, &tenant.key, "proposals.create", message(json!({}))).await;
    let credential = json!({"app": tenant.id, "provider": "null"});
    done(Through::Socket, server, &tenant.key, "apps.delete_credential", credential).await;
    let refusals = vec![
        refusal("proposals.approve", "approval_required", json!({"proposal": own["id"]})),
        refusal("proposals.create", "limit_reached", message(json!({"send_at": "2199-01-01T00:00:00Z"}))),
        refusal("proposals.create", "conflict", message(json!({}))),
        refusal("proposals.approve", "conflict", orphan),
    ];
    (tenant, refusals)
}

/// Registers a device that listens to a topic.
async fn subscribed(server: &Server, tenant: &Tenant) {
    let device = json!({"platform": "android", "provider": "null", "token": "listens", "topics": ["news"]});
    done(Through::Socket, server, &tenant.key, "devices.register", device).await;
}

async fn of_messages(server: &Server) -> Refusals {
    let tenant = server.sender().await;
    subscribed(server, &tenant).await;
    let message = |more: Value| {
        let mut record = json!({"target": {"topic": "news"}, "data": {"k": "v"}});
        record.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        record
    };
    let request = message(json!({"idempotency_key": "kept"}));
    done(Through::Socket, server, &tenant.key, "messages.send", request).await;
    let reused = message(json!({"idempotency_key": "kept", "ttl_seconds": 9}));
    let many = |title: &str, key: &str| {
        let one = json!({"target": {"topic": "news"}, "notification": {"title": title}});
        json!({"messages": [one], "idempotency_key": key})
    };
    done(Through::Socket, server, &tenant.key, "messages.send_many", many("a", "many")).await;
    let late = message(json!({"send_at": "2199-01-01T00:00:00Z"}));
    let refusals = vec![
        refusal("messages.send", "idempotency_key_reused", reused),
        refusal("messages.send", "limit_reached", late),
        refusal("messages.send_many", "idempotency_key_reused", many("b", "many")),
    ];
    (tenant, refusals)
}

async fn of_an_app_without_credential(server: &Server) -> Refusals {
    let tenant = server.tenant().await;
    subscribed(server, &tenant).await;
    let message = json!({"target": {"topic": "news"}, "data": {"k": "v"}});
    let refusals = vec![
        refusal("messages.send", "conflict", message),
        refusal("channels.create", "conflict", json!({})),
        refusal("channels.list", "conflict", json!({})),
        refusal("channels.remove", "conflict", json!({"channel": "dHN0LXNyY2gtY2hubA=="})),
    ];
    (tenant, refusals)
}

async fn of_a_full_queue(server: &Server) -> Refusals {
    let tenant = server.sender().await;
    let target = room::stranded(server, &tenant).await;
    let proposal = proposed(server, &tenant, target.clone()).await;
    room::fill(server, &tenant, &target).await;
    let message = json!({"target": target, "data": {"k": "v"}});
    let refusals = vec![
        refusal("messages.send", "queue_full", message),
        refusal("proposals.approve", "queue_full", proposal),
    ];
    (tenant, refusals)
}
