//! Ports for devices that speak something else than HTTP, and for app servers that speak XMPP: one message through each.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use stentor_gateway::client::{McsClient, McsClientEvent, McsClientLogin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{Reading, Server, server_with};

const PATIENCE: Duration = Duration::from_secs(20);

async fn server() -> Server {
    let any: Option<SocketAddr> = Some("127.0.0.1:0".parse().expect("an address"));
    server_with(|config| {
        (config.gateway.mcs_listen, config.gateway.mqtt_listen, config.gateway.ccs_listen) = (any, any, any);
    })
    .await
}

/// Connects to the port whose address the server wrote down.
async fn connect(server: &Server, file: &str) -> TcpStream {
    let address = std::fs::read_to_string(server.folder.path().join(file)).expect("the address is told");
    TcpStream::connect(address.trim()).await.expect("connected")
}

/// Reads until what came has a text in it.
async fn read_until(stream: &mut TcpStream, text: &str) -> Vec<u8> {
    let mut got = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&got).contains(text) {
            assert_ne!(
                stream.read_buf(&mut got).await.expect("read"),
                0,
                "{}",
                String::from_utf8_lossy(&got)
            );
        }
    };
    timeout(PATIENCE, reading).await.expect("it comes in time");
    got
}

/// Writes a packet of MQTT 3.1.1 (OASIS standard, 2.2): what it is, how long the rest is, the rest.
fn packet(first: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    let mut left = rest.len();
    while left >= 128 {
        bytes.push((left % 128) as u8 | 128);
        left /= 128;
    }
    bytes.push(left as u8);
    bytes.extend_from_slice(rest);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("short");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

#[tokio::test]
async fn a_device_gets_a_message_over_mqtt() {
    let server = server().await;
    let tenant = server.tenant().await;
    let joined = server.send(&tenant, Method::POST, "/gateway/v1/devices").json(&json!({})).read().await;
    let mut stream = connect(&server, "mqtt.addr").await;
    let head = [&text("MQTT")[..], &[4, 0b1100_0010, 0, 60]].concat();
    let login = [head, text("kiosk"), text(&joined.text("token")), text(&joined.text("secret"))].concat();
    stream.write_all(&packet(0x10, &login)).await.expect("written");
    let filter = [&[0, 1][..], &text("messages/#"), &[1]].concat();
    stream.write_all(&packet(0x82, &filter)).await.expect("written");
    let body = json!({"target": {"device": joined.text("device")}, "notification": {"title": "Over MQTT"}});
    let sent = server.post(&tenant, "/v1/messages", body).await;
    let got = read_until(&mut stream, "Over MQTT").await;
    assert_eq!(got[..4], [0x20, 2, 0, 0], "CONNACK, accepted");
    assert!(String::from_utf8_lossy(&got).contains(sent["id"].as_str().expect("an id")));
}

#[tokio::test]
async fn a_program_gets_a_message_over_mcs() {
    let server = server().await;
    let tenant = server.tenant().await;
    let path = format!("/v1/apps/{}/credentials/gateway", tenant.id);
    let put = server.send(&tenant, Method::PUT, &path).json(&json!({"open_registration": true})).read().await;
    assert_eq!(put.status, 204, "{put:?}");
    let checked_in = server.open(Method::POST, "/checkin").body(Vec::new()).send().await.expect("an answer");
    let bytes = checked_in.bytes().await.expect("read");
    let reply = stentor_wire::mcs::McsCheckinReply::read(&bytes).expect("a reply");
    let (android_id, token) = reply.android_id.zip(reply.security_token).expect("an android id");
    let form = format!("app=com.example&sender={}&device={android_id}", tenant.id);
    let register = server.open(Method::POST, "/c2dm/register3");
    let register = register.header("authorization", format!("AidLogin {android_id}:{token}"));
    let register = register.header("content-type", "application/x-www-form-urlencoded").body(form);
    let registered = register.send().await.expect("an answer").text().await.expect("read");
    assert!(registered.starts_with("token="), "{registered}");
    let login = McsClientLogin {
        android_id,
        security_token: token.to_string().into(),
        received: Vec::new(),
        heartbeat: None,
    };
    let mut client = McsClient::log_in(connect(&server, "mcs.addr").await, login).await.expect("logged in");
    let body = json!({"target": "everyone", "data": {"over": "mcs"}});
    server.post(&tenant, "/v1/messages", body).await;
    let message = async {
        loop {
            if let McsClientEvent::Message(data) = client.next().await.expect("an event") {
                return data;
            }
        }
    };
    let data = timeout(PATIENCE, message).await.expect("it comes in time");
    assert!(data.app_data.iter().any(|pair| (pair.key.as_str(), pair.value.as_str()) == ("over", "mcs")));
}

#[tokio::test]
async fn an_app_server_is_greeted_over_xmpp() {
    let server = server().await;
    let mut stream = connect(&server, "ccs.addr").await;
    let opening = "<stream:stream to='gcm.googleapis.com' version='1.0' xmlns='jabber:client' \
        xmlns:stream='http://etherx.jabber.org/streams'>";
    stream.write_all(opening.as_bytes()).await.expect("written");
    let got = read_until(&mut stream, "</mechanisms>").await;
    assert!(String::from_utf8_lossy(&got).contains("PLAIN"));
}

#[tokio::test]
async fn one_address_checks_in_so_often_and_then_waits() {
    let server = server_with(|config| {
        config.gateway.check_ins_per_address_burst_max_count = 3;
        config.gateway.check_ins_per_address_per_second_max_count = 1;
        config.api.trusted_proxies = vec!["127.0.0.1".to_owned()];
    })
    .await;
    let check_in = async |address: &'static str| {
        let request = server.open(Method::POST, "/checkin").header("x-forwarded-for", address);
        request.body(Vec::new()).read().await
    };
    let mut refused = None;
    // The fourth is refused unless a second passes in between; the tenth is, whatever the machine is busy with.
    for _ in 0..10 {
        let read = check_in("192.0.2.1").await;
        if read.status != 200 {
            refused = Some(read);
        }
    }
    let refused = refused.expect("one of ten in a row is refused");
    assert_eq!((refused.status, refused.headers["retry-after"].as_str()), (429, "1"), "{refused:?}");
    assert_eq!(check_in("192.0.2.2").await.status, 200, "another address has checked in never before");
}
