//! `ETag`, `If-Match` and `If-None-Match` if several servers respond for one state.

use futures_util::future::join_all;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use super::{Nodes, client, make_app};
use crate::server::Server;

/// Number of rounds in which all callers change the same state at once.
const ROUNDS: usize = 12;
/// Callers at each server.
const CALLERS: usize = 4;

/// Two servers over one database with one device.
struct Pair {
    _nodes: Nodes,
    servers: [Server; 2],
    key: String,
    app: String,
    path: String,
    client: Client,
}

impl Pair {
    /// Starts both; `None` if PostgreSQL is not installed.
    async fn start() -> Option<Self> {
        let mut nodes = Nodes::new()?;
        let servers = [nodes.start("one", ""), nodes.start("other", "")];
        let key = servers[0].root_key();
        let root = client(&servers[0], &key);
        let app = make_app(&root, 1).await;
        let devices = root.for_app(app.clone()).get("/v1/devices").await.unwrap();
        let path = format!("/v1/devices/{}", devices["devices"][0]["id"].as_str().unwrap());
        Some(Self { _nodes: nodes, servers, key, app, path, client: Client::new() })
    }

    fn ask(&self, server: usize, method: Method) -> RequestBuilder {
        let address = format!("{}{}", self.servers[server].process.url(), self.path);
        self.client.request(method, address).bearer_auth(&self.key).header("X-Stentor-App", &self.app)
    }

    async fn read(&self, server: usize) -> (String, Value) {
        let read = self.ask(server, Method::GET).send().await.unwrap();
        (tag_of(&read), read.json().await.unwrap())
    }

    /// Returns the request that puts the device with another tag of its own, under the condition `condition`.
    fn put(&self, server: usize, condition: &str, word: &str) -> RequestBuilder {
        let device = json!({"platform": "android", "provider": "null", "token": "token-0", "tags": [word]});
        self.ask(server, Method::PUT).header("If-Match", condition).json(&device)
    }
}

fn tag_of(response: &Response) -> String {
    response.headers()["etag"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn of_changes_of_one_state_at_two_servers_at_once_one_is_made_and_the_others_are_told_so() {
    let Some(pair) = Pair::start().await else { return };
    for round in 0..ROUNDS {
        let (before, _) = pair.read(round % 2).await;
        let requests = (0..2 * CALLERS).map(|caller| {
            let (pair, before) = (&pair, &before);
            async move {
                let word = format!("round-{round}-caller-{caller}");
                let reply = pair.put(caller % 2, before, &word).send().await.unwrap();
                (word, reply)
            }
        });
        let (made, refused): (Vec<_>, Vec<_>) =
            join_all(requests).await.into_iter().partition(|(_, reply)| reply.status() == StatusCode::OK);
        let [(word, reply)] = &made[..] else { panic!("{} changes were made of one state", made.len()) };
        for (_, reply) in refused {
            assert_eq!(reply.status(), StatusCode::PRECONDITION_FAILED);
            assert_eq!(reply.json::<Value>().await.unwrap()["code"], "precondition_failed");
        }
        for server in 0..2 {
            let (now, device) = pair.read(server).await;
            assert_eq!((now, &device["tags"]), (tag_of(reply), &json!([word])), "server {server}");
        }
    }
}

#[tokio::test]
async fn a_reader_at_one_server_is_told_what_was_changed_at_another_and_what_was_not() {
    let Some(pair) = Pair::start().await else { return };
    let known = |server, tag: &str| pair.ask(server, Method::GET).header("If-None-Match", tag).send();
    let (first, _) = pair.read(0).await;
    for server in 0..2 {
        let again = known(server, &first).await.unwrap();
        assert_eq!((again.status(), tag_of(&again)), (StatusCode::NOT_MODIFIED, first.clone()));
    }
    let changed = pair.put(1, &first, "changed").send().await.unwrap();
    assert_eq!(changed.status(), StatusCode::OK);
    let second = tag_of(&changed);
    for server in 0..2 {
        let old = known(server, &first).await.unwrap();
        assert_eq!((old.status(), tag_of(&old)), (StatusCode::OK, second.clone()));
        assert_eq!(old.json::<Value>().await.unwrap()["tags"], json!(["changed"]));
        assert_eq!(known(server, &second).await.unwrap().status(), StatusCode::NOT_MODIFIED);
        let late = pair.put(server, &first, "late").send().await.unwrap();
        assert_eq!(late.status(), StatusCode::PRECONDITION_FAILED);
    }
}
