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

/// Connects to the port whose address the server has written to a file.
async fn connect(server: &Server, file: &str) -> TcpStream {
    let address = std::fs::read_to_string(server.folder.path().join(file)).expect("the address is told");
    TcpStream::connect(address.trim()).await.expect("connected")
}

/// Reads until the received bytes contain a text.
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

/// Encodes a packet of MQTT 3.1.1 (OASIS standard, 2.2): the fixed header, the remaining length, the rest.
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
    // The fourth is refused unless a second passes in between; the tenth is refused however busy the machine is.
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

/// Checks a program in; returns its login.
async fn checked_in(server: &Server) -> String {
    let answer = server.open(Method::POST, "/checkin").body(Vec::new()).send().await.expect("an answer");
    let bytes = answer.bytes().await.expect("read");
    let reply = stentor_wire::mcs::McsCheckinReply::read(&bytes).expect("a reply");
    let (android_id, token) = reply.android_id.zip(reply.security_token).expect("an android id");
    format!("AidLogin {android_id}:{token}")
}

#[tokio::test]
async fn an_installation_ends_with_its_key_and_has_no_way_round_the_limit_of_registrations() {
    let server = server_with(|config| {
        config.gateway.registrations_burst_max_count = 5;
        config.gateway.registrations_per_second_max_count = 1;
    })
    .await;
    let tenant = server.tenant().await;
    let keys = format!("/v1/apps/{}/keys", tenant.id);
    let made = server.post(&tenant, &keys, json!({"name": "devices", "scopes": ["join"]})).await;
    let install = server.open(Method::POST, &format!("/v1/projects/{}/installations", tenant.id));
    let install = install.header("x-goog-api-key", made["secret"].as_str().expect("a key")).json(&json!({}));
    let installed = install.read().await;
    assert_eq!(installed.status, 200, "{installed:?}");
    let token = installed.body["authToken"]["token"].as_str().expect("a token").to_owned();
    let login = checked_in(&server).await;
    let register = async |name: usize| {
        let form = format!(
            "app=a&X-subtype=s{name}&sender={}&X-Goog-Firebase-Installations-Auth={token}",
            tenant.id
        );
        let request = server.open(Method::POST, "/c2dm/register3").header("authorization", &login);
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        request.send().await.expect("an answer").text().await.expect("read")
    };
    let mut replies = Vec::new();
    for name in 0..40 {
        replies.push(register(name).await);
    }
    assert!(replies[0].starts_with("token="), "{replies:?}");
    assert!(replies.iter().any(|reply| reply == "Error=TOO_MANY_REGISTRATIONS"), "{replies:?}");
    let key = format!("{keys}/{}", made["id"].as_str().expect("an id"));
    assert_eq!(server.send(&tenant, Method::DELETE, &key).read().await.status, 204);
    assert_eq!(register(99).await, "Error=INVALID_SENDER");
    let renew = format!("/v1/projects/{}/installations/x/authTokens:generate", tenant.id);
    let refresh = format!("FIS_v2 {}", installed.text("refreshToken"));
    let renewed = server.open(Method::POST, &renew).header("authorization", refresh).read().await;
    assert_eq!(renewed.status, 401, "{renewed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_before_logins_is_bounded_and_devices_get_in() {
    let server = server().await;
    let tenant = server.tenant().await;
    let joined = server.send(&tenant, Method::POST, "/gateway/v1/devices").json(&json!({})).read().await;
    let begun = |first: &[u8], bytes| [first, &vec![b'a'; bytes]].concat();
    let halves = [
        // A CONNECT of 16 KiB, a login of 64 KiB, and spaces within a stream.
        (
            "mqtt.addr",
            begun(&[&[0x10, 0xf0, 0x7f][..], &text("MQTT"), &[4, 0xc2, 0, 60, 0x3f, 0]].concat(), 15_000),
        ),
        ("mcs.addr", begun(&[41, 2, 0xff, 0xff, 3, 0x0a, 0xf0, 0xff, 3], 60_000)),
        ("ccs.addr", begun(b"<stream:stream to='x' xmlns='jabber:client' a='", 3_500)),
    ];
    let mut held = Vec::new();
    for (file, bytes) in &halves {
        for _ in 0..400 {
            let mut stream = connect(&server, file).await;
            let _may_be_refused = stream.write_all(bytes).await;
            held.push(stream);
        }
    }
    let mut open = 0;
    for stream in &mut held {
        let mut piece = [0; 64];
        // The server closes a connection at once if there is no room for its bytes; the others wait for the rest.
        let read = timeout(Duration::from_millis(5), stream.read(&mut piece)).await;
        open += usize::from(read.is_err());
    }
    assert!(open < 800, "{open} of {} are open, with more than 4 MiB of one address", held.len());
    let mut stream = connect(&server, "mqtt.addr").await;
    let head = [&text("MQTT")[..], &[4, 0b1100_0010, 0, 60]].concat();
    let login = [head, text("kiosk"), text(&joined.text("token")), text(&joined.text("secret"))].concat();
    stream.write_all(&packet(0x10, &login)).await.expect("written");
    assert_eq!(read_until(&mut stream, " ").await[..4], [0x20, 2, 0, 0], "CONNACK, accepted");
}
