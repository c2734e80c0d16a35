//! The server's descriptions of itself.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::harness::{Server, server, server_with};

async fn text(server: &Server, path: &str) -> String {
    let response = server.client.get(format!("{}{path}", server.url)).send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 200, "{path}");
    response.text().await.expect("text")
}

#[tokio::test]
async fn faces_are_found_and_each_description_is_there() {
    let server = server().await;
    let document: Value = serde_json::from_str(&text(&server, "/.well-known/stentor").await).expect("JSON");
    let faces = document["faces"].as_array().expect("faces");
    assert!(faces.iter().any(|face| face["name"] == "xmlrpc" && face["address"] == "/rpc"));
    assert!(faces.iter().all(|face| face["name"] != "socket"), "it is not open");
    for face in faces {
        let description = face["description"].as_str().expect("an address");
        assert!(text(&server, description).await.len() > 1_000, "{face}");
    }
    // REST is also described in other formats, for clients that cannot read OpenAPI.
    let rest = faces.iter().find(|face| face["name"] == "rest").expect("REST");
    let others =
        rest["others"].as_array().expect("others").iter().map(|other| other.as_str().expect("an address"));
    let others: Vec<_> = others.collect();
    assert_eq!(others, ["/.well-known/stentor/wadl", "/.well-known/stentor/wsdl2"]);
    for (other, root) in others.into_iter().zip(["<application ", "<description "]) {
        let text = text(&server, other).await;
        assert!(text.contains(root), "{other}: {}", &text[..200]);
    }
}

#[tokio::test]
async fn a_raw_socket_that_is_open_is_found_by_its_port() {
    let server = server_with(|config| config.api.socket_listen = "127.0.0.1:0".parse().ok()).await;
    let document: Value = serde_json::from_str(&text(&server, "/.well-known/stentor").await).expect("JSON");
    let mut faces = document["faces"].as_array().expect("faces").iter();
    let socket = faces.find(|face| face["name"] == "socket").expect("the socket");
    assert_eq!(socket["port"], server.socket.expect("it is open").port());
}

#[tokio::test]
async fn the_document_is_signed_under_the_key_that_it_names() {
    let server = server().await;
    let document = text(&server, "/.well-known/stentor").await;
    let signed = text(&server, "/.well-known/stentor.jws").await;
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64url");
    let read: Value = serde_json::from_str(&document).expect("JSON");
    let key = decoded(read["keys"][0]["x"].as_str().expect("a key"));
    let (text, signature) = signed.rsplit_once('.').expect("three parts");
    UnparsedPublicKey::new(&ED25519, key).verify(text.as_bytes(), &decoded(signature)).expect("it holds");
    assert_eq!(decoded(text.split_once('.').expect("a payload").1), document.as_bytes());
}
