//! Callers that disconnect, and callers that never finish.

use std::convert::Infallible;
use std::io;

use futures_util::stream::{self, StreamExt as _};
use reqwest::Body;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{EVERY_FACE, HTTP_FACES, HttpRequest, done, prepared, read, received, server, start};
use crate::faces::socket;
use crate::harness::{Server, Tenant};
use crate::limits::until;

fn registration() -> Value {
    json!({"platform": "android", "provider": "null", "token": "half-a-phone"})
}

fn half(request: &HttpRequest) -> Vec<u8> {
    request.body[..request.body.len() / 2].to_vec()
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_refused_everywhere() {
    let server = server().await;
    let tenant = server.sender().await;
    for through in HTTP_FACES {
        let request = prepared(through, "devices.register", &registration());
        let begun = stream::once(std::future::ready(Ok::<_, Infallible>(half(&request))));
        let body = Body::wrap_stream(begun.chain(stream::pending()));
        let response = start(through, &server, &tenant.key, &request, body).send().await.expect("an answer");
        let refused = read(through, "devices.register", received(response).await).expect_err("a refusal");
        assert_eq!(refused.0, "request_timeout", "{through:?}");
    }
    let mut client = socket::client(&server, &tenant.key).await;
    client.stream.write_all(&[0, 0, 1, 0, b'{']).await.expect("written");
    assert_eq!(client.ended().await, "request_timeout");
    nothing_is_left(&server, &tenant).await;
}

#[tokio::test]
async fn a_request_that_is_cut_in_the_middle_leaves_nothing_behind_and_others_go_on() {
    let server = server().await;
    let tenant = server.sender().await;
    for through in HTTP_FACES {
        let request = prepared(through, "devices.register", &registration());
        let pieces = [Ok(half(&request)), Err(io::Error::other("the caller has gone"))];
        let body = Body::wrap_stream(stream::iter(pieces));
        let result = start(through, &server, &tenant.key, &request, body).send().await;
        // A caller that disconnects gets no reply; a faster face may still refuse.
        if let Ok(response) = result {
            assert!(read(through, "devices.register", received(response).await).is_err(), "{through:?}");
        }
    }
    let mut client = socket::client(&server, &tenant.key).await;
    client.stream.write_all(&[0, 0, 1, 0, b'{']).await.expect("written");
    drop(client);
    nothing_is_left(&server, &tenant).await;
    for through in EVERY_FACE {
        let listed = done(through, &server, &tenant.key, "topics.list", json!({})).await;
        assert!(listed["topics"].as_array().is_none_or(Vec::is_empty), "{through:?}: {listed}");
    }
}

async fn nothing_is_left(server: &Server, tenant: &Tenant) {
    until(server, "stentor_request_bodies_bytes", 0).await;
    assert_eq!(server.get(tenant, "/v1/devices").await["devices"], json!([]));
}
