//! A face under trial: a subject that LSP-1 orders to serve an operation, and plain HTTP to it.

use super::PaperProtocol;
use crate::subject::client::SubjectClient;
use crate::subject::dialect::{SubjectDialect, ValueFormat};
use crate::subject::process::{PATIENCE, SubjectProcess};
use crate::subject::protocol::{Prepare, Report, SubjectOrder, SubjectRole};
use crate::subject::reference::Op;
use crate::subject::setup::SubjectSetup;
use crate::subject::{Definition, SubjectError};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, LOCATION};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use stentor_wire::Content;
use tokio::net::TcpStream;

/// The seed of contents.
const SEED: u64 = 2009;
/// The maximum length of a response.
const ANSWER_MAX_BYTES: usize = 4 << 20;

/// A face under trial.
pub struct TrialFace {
    pub(super) protocol: PaperProtocol,
    pub(super) dialect: SubjectDialect,
    /// True for our own face, with formats that can be probed without it.
    pub(super) is_ours: bool,
    /// True if its definition states that it encrypts.
    pub(super) encrypts: bool,
    place: FaceLocation,
}

enum FaceLocation {
    /// A subject, which is prepared for each operation and listens on a new port then.
    Subject(Box<SubjectProcess>),
    /// A server that is already listening.
    At(SocketAddr),
}

/// An HTTP response.
pub(super) struct FaceResponse {
    pub(super) status: u16,
    /// The target of a redirect.
    location: Option<String>,
    pub(super) body: Vec<u8>,
}

impl TrialFace {
    /// Starts a subject that plays the protocol's dialect.
    pub async fn start(protocol: PaperProtocol, definition: &Definition) -> Result<Self, SubjectError> {
        let place = started(definition).await?;
        Ok(Self { protocol, dialect: protocol.dialect()?, is_ours: true, encrypts: true, place })
    }

    /// Starts a foreign subject that speaks one of the protocols.
    pub async fn foreign(definition: &Definition) -> Result<Self, SubjectError> {
        let dialect = definition.dialect()?;
        let protocol = PaperProtocol::of(dialect).ok_or_else(|| SubjectError::Unprobed(dialect.name()))?;
        let encrypts = definition.encrypts(SubjectRole::Server);
        Ok(Self { protocol, dialect, is_ours: false, encrypts, place: started(definition).await? })
    }

    /// Uses the server at an address as the face.
    pub fn at(protocol: PaperProtocol, address: SocketAddr) -> Result<Self, SubjectError> {
        Ok(Self {
            protocol,
            dialect: protocol.dialect()?,
            is_ours: true,
            encrypts: true,
            place: FaceLocation::At(address),
        })
    }

    /// Returns true if its documents are XML.
    pub(super) fn is_of_xml(&self) -> bool {
        self.dialect.format != ValueFormat::Json
    }

    /// Ends the subject.
    pub async fn end(self) {
        if let FaceLocation::Subject(host) = self.place {
            host.end().await;
        }
    }

    /// Orders the subject to serve an operation, and returns its address.
    pub(super) async fn serve(
        &mut self,
        op: Op,
        factors: BTreeMap<String, String>,
    ) -> Result<SocketAddr, SubjectError> {
        let host = match &mut self.place {
            FaceLocation::At(address) => return Ok(*address),
            FaceLocation::Subject(host) => host,
        };
        let bind = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let variant = String::new();
        let order =
            Prepare { role: SubjectRole::Server, op, factors, bind, target: None, seed: SEED, variant };
        match host.ask(&SubjectOrder::Prepare(order)).await? {
            Report::Ready { port: port @ 1.., .. } => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            other => Err(other.instead_of("ready with a port")),
        }
    }

    /// Exchanges one content with the face, over a connection as specified by the factors.
    pub(super) async fn exchange(
        &mut self,
        op: Op,
        factors: BTreeMap<String, String>,
        request: &Content,
    ) -> Result<Content, SubjectError> {
        let setup = SubjectSetup::of(&factors, SEED)?;
        let address = self.serve(op, factors).await?;
        let exchange = async {
            let mut client = SubjectClient::connect_as(self.dialect, op, address, setup).await?;
            Ok(client.exchange(0, 0, request).await?.1)
        };
        within(exchange).await
    }

    /// Requests a path.
    pub(super) async fn get(&mut self, op: Op, path: &str) -> Result<FaceResponse, SubjectError> {
        let address = self.serve(op, BTreeMap::new()).await?;
        let answer = within(send(address, http::Request::get(path), &[])).await?;
        // A redirect is followed once, as by any client, but always at the same address, regardless of the host that it names.
        match answer.location.as_deref().and_then(path_of) {
            Some(other) if answer.status / 100 == 3 => {
                within(send(address, http::Request::get(other), &[])).await
            }
            _ => Ok(answer),
        }
    }

    /// Sends a body to an operation as the dialect does.
    pub(super) async fn post(&mut self, op: Op, body: &[u8]) -> Result<FaceResponse, SubjectError> {
        let address = self.serve(op, BTreeMap::new()).await?;
        let request = http::Request::post(format!("/{}", op.word()));
        let mut request = request.header(CONTENT_TYPE, self.dialect.content_type(op));
        if let Some(action) = self.dialect.soap_action(op) {
            request = request.header("SOAPAction", action);
        }
        within(send(address, request, body)).await
    }
}

/// Returns the path of a location, which may include a host.
fn path_of(location: &str) -> Option<String> {
    let place = location.split_once("://").map_or(location, |(_, rest)| rest);
    place.find('/').map(|start| place[start..].to_owned())
}

async fn started(definition: &Definition) -> Result<FaceLocation, SubjectError> {
    let mut host = SubjectProcess::start(definition, PATIENCE)?;
    host.ask(&SubjectOrder::Hello).await?;
    Ok(FaceLocation::Subject(Box::new(host)))
}

/// Applies the timeout of orders to a trial.
async fn within<T>(trial: impl Future<Output = Result<T, SubjectError>>) -> Result<T, SubjectError> {
    let silent = SubjectError::Silent { to: "answer", seconds: PATIENCE.as_secs() };
    tokio::time::timeout(PATIENCE, trial).await.map_err(|_| silent)?
}

async fn send(
    address: SocketAddr,
    request: http::request::Builder,
    body: &[u8],
) -> Result<FaceResponse, SubjectError> {
    let request = request.header(HOST, address.to_string()).header(CONNECTION, "close");
    let request = request.body(Full::new(Bytes::copy_from_slice(body)));
    let request = request.map_err(|error| SubjectError::Exchange(error.to_string()))?;
    let stream = TcpStream::connect(address).await.map_err(SubjectError::io(format!("asking {address}")))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(unanswered)?;
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await.map_err(unanswered)?.into_parts();
    let body = Limited::new(body, ANSWER_MAX_BYTES).collect().await.map_err(|_| no_answer())?;
    let location = head.headers.get(LOCATION).and_then(|place| place.to_str().ok()).map(str::to_owned);
    Ok(FaceResponse { status: head.status.as_u16(), location, body: body.to_bytes().to_vec() })
}

/// Distinguishes an invalid response from a missing one.
fn unanswered(error: hyper::Error) -> SubjectError {
    if error.is_parse() { no_answer() } else { SubjectError::Unanswered }
}

fn no_answer() -> SubjectError {
    SubjectError::Exchange("an answer that is no HTTP".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_sends_us_elsewhere_is_asked_there() {
        let places = ["/axis2/", "http://10.0.0.1:80/axis2/x?wsdl", "nowhere"].map(path_of);
        assert_eq!(places, [Some("/axis2/".to_owned()), Some("/axis2/x?wsdl".to_owned()), None]);
    }
}
