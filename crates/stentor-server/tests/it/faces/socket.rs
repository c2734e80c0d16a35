//! The raw socket.

mod limits;
mod stories;

use std::time::Duration;

use serde_json::{Value, json};
use stentor_server::config::Config;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{Server, Tenant, server_with};

/// Longest wait for expected data.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a server with a raw socket.
pub(super) async fn socket_server(change: impl FnOnce(&mut Config)) -> Server {
    server_with(|config| {
        config.api.socket_listen = Some("127.0.0.1:0".parse().expect("an address"));
        change(config);
    })
    .await
}

/// A client of the frame protocol.
pub(super) struct Client<S> {
    pub(super) stream: S,
    pub(super) greeting: Value,
    next: u64,
}

pub(super) async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.socket.expect("a raw socket")).await.expect("connected")
}

/// Connects with a key, in JSON.
pub(super) async fn client(server: &Server, key: &str) -> Client<TcpStream> {
    said_hello(connect(server).await, &json!({"stentor": 1, "key": key})).await
}

async fn of(server: &Server, tenant: &Tenant) -> Client<TcpStream> {
    client(server, &tenant.key).await
}

pub(super) async fn said_hello<S: AsyncRead + AsyncWrite + Unpin>(stream: S, hello: &Value) -> Client<S> {
    let mut client = Client { stream, greeting: Value::Null, next: 1 };
    client.write(hello.to_string().as_bytes()).await;
    client.greeting = client.reply().await;
    client
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    async fn write(&mut self, payload: &[u8]) {
        let frame = stentor_wire::frame::write(payload).expect("a frame");
        self.stream.write_all(&frame).await.expect("written");
    }

    /// Reads a frame; `None` when the server has closed.
    async fn frame(&mut self) -> Option<Vec<u8>> {
        let reading = async {
            let length = self.stream.read_u32().await.ok()?;
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await.expect("a whole frame");
            Some(payload)
        };
        timeout(PATIENCE, reading).await.expect("in time")
    }

    pub(super) async fn reply(&mut self) -> Value {
        let frame = self.frame().await.expect("a reply");
        serde_json::from_slice(&frame).expect("JSON")
    }

    /// Sends a request and returns its number.
    pub(super) async fn send(&mut self, operation: &str, record: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let request = json!({"id": id, "operation": operation, "record": record});
        self.write(request.to_string().as_bytes()).await;
        id
    }

    /// Sends a request and waits for the reply.
    async fn ask(&mut self, operation: &str, record: Value) -> Value {
        let id = self.send(operation, record).await;
        let reply = self.reply().await;
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    /// Calls an operation that must succeed; returns the reply.
    pub(super) async fn done(&mut self, operation: &str, record: Value) -> Value {
        let reply = self.ask(operation, record).await;
        assert!(reply.get("error").is_none(), "{operation}: {reply}");
        reply["reply"].clone()
    }

    /// Calls an operation that must be refused; returns code and field.
    async fn refused(&mut self, operation: &str, record: Value) -> (String, Option<String>) {
        refusal(&self.ask(operation, record).await)
    }

    /// Reads the last frame, which is about the connection, and its end.
    pub(super) async fn ended(&mut self) -> String {
        let last = self.reply().await;
        assert_eq!(last["id"], 0, "{last}");
        assert_eq!(self.frame().await, None);
        refusal(&last).0
    }
}

/// Returns code and field of a refusal, and checks that it is well-formed.
pub(super) fn refusal(reply: &Value) -> (String, Option<String>) {
    let error = &reply["error"];
    assert!(error["number"].as_i64().is_some_and(|number| number > 0), "{reply}");
    assert!(error["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{reply}");
    let text = |name: &str| error[name].as_str().map(str::to_owned);
    (text("code").expect("a code"), text("field"))
}
