//! Devices over MCS that confirm late, twice, never, or foreign messages, and one that is connected twice.

use std::collections::BTreeSet;

use stentor_gateway::client::{McsClient, McsClientEvent, McsClientLogin};
use stentor_wire::mcs::McsCheckinReply;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::faults::{connect_to, until_delivered};
use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// A program that has checked in and registered once.
struct Program {
    login: McsClientLogin,
    token: String,
}

impl Program {
    async fn register(server: &Server, tenant: &Tenant) -> Self {
        let reply = server.open(Method::POST, "/checkin").body(Vec::new()).send().await.expect("an answer");
        let reply = McsCheckinReply::read(&reply.bytes().await.expect("read")).expect("a reply");
        let (android_id, secret) = reply.android_id.zip(reply.security_token).expect("an android id");
        let request = server.open(Method::POST, "/c2dm/register3");
        let request = request.header("authorization", format!("AidLogin {android_id}:{secret}"));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let form = format!("app=com.example&sender={}&device={android_id}", tenant.id);
        let reply = request.body(form).send().await.expect("an answer").text().await.expect("read");
        let token = reply.strip_prefix("token=").expect("a token").trim().to_owned();
        let (security_token, received) = (secret.to_string().into(), Vec::new());
        let login = McsClientLogin { android_id, security_token, received, heartbeat: None };
        Self { login, token }
    }

    async fn send(&self, server: &Server, tenant: &Tenant) -> String {
        let token = json!({"platform": "android", "provider": "gateway", "token": self.token});
        send(server, tenant, json!({"token": token}), "Hi").await
    }

    /// Connects, and lists the messages received before.
    async fn connect(&self, server: &Server, received: &[&String]) -> McsClient<TcpStream> {
        let received = received.iter().map(|id| (*id).clone()).collect();
        let login = McsClientLogin { received, ..self.login.clone() };
        McsClient::log_in(connect_to(server, "mcs.addr").await, login).await.expect("let in")
    }
}

/// Waits for this number of messages, in any order.
async fn some(client: &mut McsClient<TcpStream>, count: usize) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    while ids.len() < count {
        let event = timeout(PATIENCE, client.next()).await.expect("in time").expect("connected");
        if let McsClientEvent::Message(data) = event {
            ids.insert(data.persistent_id.clone().expect("an id"));
        }
    }
    ids
}

async fn acknowledge(client: &mut McsClient<TcpStream>, id: &str) {
    client.acknowledge(&[id.to_owned()]).await.expect("written");
}

#[tokio::test]
async fn r16_over_mcs_each_message_is_delivered_once_however_it_is_confirmed() {
    let server = server_with(|config| {
        config.gateway.mcs_listen = Some("127.0.0.1:0".parse().expect("an address"));
    })
    .await;
    let tenant = server.tenant().await;
    let path = format!("/v1/apps/{}/credentials/gateway", tenant.id);
    let put = server.send(&tenant, Method::PUT, &path).json(&json!({"open_registration": true})).read().await;
    assert_eq!(put.status, 204, "{put:?}");
    let (program, other) =
        (Program::register(&server, &tenant).await, Program::register(&server, &tenant).await);
    let foreign = other.send(&server, &tenant).await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(program.send(&server, &tenant).await);
    }
    let mut first = program.connect(&server, &[]).await;
    assert_eq!(some(&mut first, 3).await, sent.iter().cloned().collect());
    // A message of another device, and an unknown one.
    acknowledge(&mut first, &foreign).await;
    acknowledge(&mut first, "0:1234%5678").await;
    // In time, and once more.
    acknowledge(&mut first, &sent[0]).await;
    acknowledge(&mut first, &sent[0]).await;
    until_delivered(&server, &tenant, &sent[0], 1).await;
    // A second connection replaces the first one, and gets the unconfirmed messages.
    let mut second = program.connect(&server, &[]).await;
    assert!(timeout(PATIENCE, first.next()).await.expect("in time").is_err(), "the first one ends");
    assert_eq!(some(&mut second, 2).await, sent[1..].iter().cloned().collect());
    // Late: it lists the messages when it reconnects.
    drop(second);
    let mut third = program.connect(&server, &[&sent[0], &sent[1], &foreign]).await;
    assert_eq!(some(&mut third, 1).await, BTreeSet::from([sent[2].clone()]));
    acknowledge(&mut third, &sent[2]).await;
    for message in &sent {
        until_delivered(&server, &tenant, message, 1).await;
    }
    assert_eq!(totals(&server, &tenant, &foreign).await, (1, 0), "another's is untouched");
    let mut theirs = other.connect(&server, &[]).await;
    assert_eq!(some(&mut theirs, 1).await, BTreeSet::from([foreign]));
}
