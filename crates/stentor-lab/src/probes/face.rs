//! A face of ours under trial: a subject that is told by LSP-1 which operation to serve, and plain HTTP to it.

use super::Protocol;
use crate::subject::client::Client;
use crate::subject::dialect::Dialect;
use crate::subject::host::{Host, PATIENCE};
use crate::subject::protocol::{Order, Prepare, Report, Role};
use crate::subject::reference::Op;
use crate::subject::setup::Setup;
use crate::subject::{Definition, SubjectError};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use stentor_wire::Content;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Contents are made from this.
const SEED: u64 = 2009;
/// The longest answer that is read.
const ANSWER_MAX_BYTES: u64 = 4 << 20;

/// A face under trial.
pub struct Face {
    pub(super) protocol: Protocol,
    pub(super) dialect: Dialect,
    place: Place,
}

enum Place {
    /// A subject, which listens anew for each operation.
    Subject(Box<Host>),
    /// Somebody who listens already.
    At(SocketAddr),
}

/// An answer by HTTP.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Face {
    /// Starts a subject that plays the protocol's dialect.
    pub async fn start(protocol: Protocol, definition: &Definition) -> Result<Self, SubjectError> {
        let mut host = Host::start(definition, PATIENCE)?;
        host.ask(&Order::Hello).await?;
        Ok(Self { protocol, dialect: protocol.dialect()?, place: Place::Subject(Box::new(host)) })
    }

    /// Takes whoever listens there for the face.
    pub fn at(protocol: Protocol, address: SocketAddr) -> Result<Self, SubjectError> {
        Ok(Self { protocol, dialect: protocol.dialect()?, place: Place::At(address) })
    }

    /// Ends the subject.
    pub async fn end(self) {
        if let Place::Subject(host) = self.place {
            host.end().await;
        }
    }

    /// Has an operation served, and says where.
    pub(super) async fn serve(
        &mut self,
        op: Op,
        factors: BTreeMap<String, String>,
    ) -> Result<SocketAddr, SubjectError> {
        let host = match &mut self.place {
            Place::At(address) => return Ok(*address),
            Place::Subject(host) => host,
        };
        let bind = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let variant = String::new();
        let order = Prepare { role: Role::Server, op, factors, bind, target: None, seed: SEED, variant };
        match host.ask(&Order::Prepare(order)).await? {
            Report::Ready { port: port @ 1.. } => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            other => Err(SubjectError::Babble { line: other.name().into(), wanted: "ready with a port" }),
        }
    }

    /// Exchanges one content with the face, over whatever the factors say.
    pub(super) async fn exchange(
        &mut self,
        op: Op,
        factors: BTreeMap<String, String>,
        request: &Content,
    ) -> Result<Content, SubjectError> {
        let setup = Setup::of(&factors, SEED);
        let address = self.serve(op, factors).await?;
        let exchange = async {
            let mut client = Client::connect_as(self.dialect, op, address, setup).await?;
            Ok(client.exchange(0, 0, request).await?.1)
        };
        within(exchange).await
    }

    /// Asks for a path.
    pub(super) async fn get(&mut self, op: Op, path: &str) -> Result<Response, SubjectError> {
        let address = self.serve(op, BTreeMap::new()).await?;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        within(send(address, head, &[])).await
    }

    /// Sends a body to an operation as the dialect does.
    pub(super) async fn post(&mut self, op: Op, body: &[u8]) -> Result<Response, SubjectError> {
        let address = self.serve(op, BTreeMap::new()).await?;
        let action = self.dialect.soap_action(op);
        let action = action.map(|action| format!("SOAPAction: {action}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /{} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {}\r\n{action}Content-Length: {}\r\n\r\n",
            op.name(),
            self.dialect.content_type(op),
            body.len()
        );
        within(send(address, head, body)).await
    }
}

/// Waits no longer than for any other order.
async fn within<T>(trial: impl Future<Output = Result<T, SubjectError>>) -> Result<T, SubjectError> {
    let silent = SubjectError::Silent { to: "answer", seconds: PATIENCE.as_secs() };
    tokio::time::timeout(PATIENCE, trial).await.map_err(|_| silent)?
}

async fn send(address: SocketAddr, head: String, body: &[u8]) -> Result<Response, SubjectError> {
    let wrong = || SubjectError::io(format!("asking {address}"));
    let mut stream = TcpStream::connect(address).await.map_err(wrong())?;
    stream.write_all(&[head.as_bytes(), body].concat()).await.map_err(wrong())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX_BYTES).read_to_end(&mut answer).await.map_err(wrong())?;
    response(&answer).ok_or_else(|| SubjectError::Exchange("an answer that is no HTTP".into()))
}

fn response(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Response { status, body: answer[end + 4..].to_vec() })
}
