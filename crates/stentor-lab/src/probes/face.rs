//! A face under trial: a subject that is told by LSP-1 which operation to serve, and plain HTTP to it.

use super::PaperProtocol;
use crate::subject::client::SubjectClient;
use crate::subject::dialect::{SubjectDialect, ValueFormat};
use crate::subject::process::{PATIENCE, SubjectProcess};
use crate::subject::protocol::{Prepare, Report, SubjectOrder, SubjectRole};
use crate::subject::reference::Op;
use crate::subject::setup::SubjectSetup;
use crate::subject::{Definition, SubjectError};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use stentor_wire::Content;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Contents are made from this.
const SEED: u64 = 2009;
/// The longest answer that is read.
const ANSWER_MAX_BYTES: usize = 4 << 20;

/// A face under trial.
pub struct TrialFace {
    pub(super) protocol: PaperProtocol,
    pub(super) dialect: SubjectDialect,
    /// Whether it is of this program, whose formats can be asked without it.
    pub(super) is_ours: bool,
    /// Whether it says that it encrypts.
    pub(super) encrypts: bool,
    place: FaceLocation,
}

enum FaceLocation {
    /// A subject, which listens anew for each operation.
    Subject(Box<SubjectProcess>),
    /// Somebody who listens already.
    At(SocketAddr),
}

/// An answer by HTTP.
pub(super) struct FaceResponse {
    pub(super) status: u16,
    /// Where it sends the caller instead.
    location: Option<String>,
    pub(super) body: Vec<u8>,
}

impl TrialFace {
    /// Starts a subject that plays the protocol's dialect.
    pub async fn start(protocol: PaperProtocol, definition: &Definition) -> Result<Self, SubjectError> {
        let place = started(definition).await?;
        Ok(Self { protocol, dialect: protocol.dialect()?, is_ours: true, encrypts: true, place })
    }

    /// Starts somebody else's subject, which speaks one of the protocols.
    pub async fn foreign(definition: &Definition) -> Result<Self, SubjectError> {
        let dialect = definition.dialect()?;
        let protocol = PaperProtocol::of(dialect).ok_or_else(|| SubjectError::Unprobed(dialect.name()))?;
        let encrypts = definition.encrypts(SubjectRole::Server);
        Ok(Self { protocol, dialect, is_ours: false, encrypts, place: started(definition).await? })
    }

    /// Takes whoever listens there for the face.
    pub fn at(protocol: PaperProtocol, address: SocketAddr) -> Result<Self, SubjectError> {
        Ok(Self {
            protocol,
            dialect: protocol.dialect()?,
            is_ours: true,
            encrypts: true,
            place: FaceLocation::At(address),
        })
    }

    /// Returns whether its documents are XML.
    pub(super) fn is_of_xml(&self) -> bool {
        self.dialect.format != ValueFormat::Json
    }

    /// Ends the subject.
    pub async fn end(self) {
        if let FaceLocation::Subject(host) = self.place {
            host.end().await;
        }
    }

    /// Has an operation served, and returns where.
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

    /// Exchanges one content with the face, over whatever the factors say.
    pub(super) async fn exchange(
        &mut self,
        op: Op,
        factors: BTreeMap<String, String>,
        request: &Content,
    ) -> Result<Content, SubjectError> {
        let setup = SubjectSetup::of(&factors, SEED);
        let address = self.serve(op, factors).await?;
        let exchange = async {
            let mut client = SubjectClient::connect_as(self.dialect, op, address, setup).await?;
            Ok(client.exchange(0, 0, request).await?.1)
        };
        within(exchange).await
    }

    /// Asks for a path.
    pub(super) async fn get(&mut self, op: Op, path: &str) -> Result<FaceResponse, SubjectError> {
        let address = self.serve(op, BTreeMap::new()).await?;
        let answer = within(send(address, get(address, path), &[])).await?;
        // As every client does, it is gone after once; whoever is named there, the one who sent us is asked.
        match answer.location.as_deref().and_then(path_of) {
            Some(other) if answer.status / 100 == 3 => within(send(address, get(address, &other), &[])).await,
            _ => Ok(answer),
        }
    }

    /// Sends a body to an operation as the dialect does.
    pub(super) async fn post(&mut self, op: Op, body: &[u8]) -> Result<FaceResponse, SubjectError> {
        let address = self.serve(op, BTreeMap::new()).await?;
        let action = self.dialect.soap_action(op);
        let action = action.map(|action| format!("SOAPAction: {action}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /{} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {}\r\n{action}Content-Length: {}\r\n\r\n",
            op.word(),
            self.dialect.content_type(op),
            body.len()
        );
        within(send(address, head, body)).await
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
}

/// Returns the path of a place that may be named with its host.
fn path_of(location: &str) -> Option<String> {
    let place = location.split_once("://").map_or(location, |(_, rest)| rest);
    place.find('/').map(|start| place[start..].to_owned())
}

async fn started(definition: &Definition) -> Result<FaceLocation, SubjectError> {
    let mut host = SubjectProcess::start(definition, PATIENCE)?;
    host.ask(&SubjectOrder::Hello).await?;
    Ok(FaceLocation::Subject(Box::new(host)))
}

/// Waits no longer than for any other order.
async fn within<T>(trial: impl Future<Output = Result<T, SubjectError>>) -> Result<T, SubjectError> {
    let silent = SubjectError::Silent { to: "answer", seconds: PATIENCE.as_secs() };
    tokio::time::timeout(PATIENCE, trial).await.map_err(|_| silent)?
}

async fn send(address: SocketAddr, head: String, body: &[u8]) -> Result<FaceResponse, SubjectError> {
    let wrong = || SubjectError::io(format!("asking {address}"));
    let mut stream = TcpStream::connect(address).await.map_err(wrong())?;
    stream.write_all(&[head.as_bytes(), body].concat()).await.map_err(wrong())?;
    let mut answer = Vec::new();
    let mut part = [0; 16 << 10];
    // Not everybody closes when asked to: the answer ends where it says so, and only else with the connection.
    loop {
        let count = stream.read(&mut part).await.map_err(|_| SubjectError::Unanswered)?;
        answer.extend_from_slice(&part[..count]);
        if let Some(whole) = response(&answer, count == 0) {
            return Ok(whole);
        }
        if answer.is_empty() {
            return Err(SubjectError::Unanswered);
        }
        if count == 0 || answer.len() > ANSWER_MAX_BYTES {
            return Err(SubjectError::Exchange("an answer that is no HTTP".into()));
        }
    }
}

/// Reads an answer; `None` while it is not there as a whole.
fn response(answer: &[u8], has_ended: bool) -> Option<FaceResponse> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let field = |wanted: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    let body = &answer[end + 4..];
    let body = if field("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
        joined(body)?
    } else if let Some(length) = field("content-length") {
        body.get(..length.parse().ok()?)?.to_vec()
    } else {
        has_ended.then(|| body.to_vec())?
    };
    Some(FaceResponse { status, location: field("location").map(str::to_owned), body })
}

/// Joins the chunks of a body.
fn joined(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        let start = end + 2;
        body.extend(rest.get(start..start.checked_add(size)?)?);
        rest = rest.get(start + size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_where_it_says_so_and_only_else_with_the_connection() {
        let body = |text: &str, has_ended| response(text.as_bytes(), has_ended).map(|one| one.body);
        let said = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
        assert_eq!(body(&format!("{said}ab"), false), Some(b"ab".to_vec()));
        assert_eq!((body(&format!("{said}a"), true), body("HTTP/1.1 200", true)), (None, None));
        let unsaid = "HTTP/1.1 200 OK\r\n\r\nab";
        assert_eq!((body(unsaid, false), body(unsaid, true)), (None, Some(b"ab".to_vec())));
    }

    #[test]
    fn whoever_sends_us_elsewhere_is_asked_there() {
        let places = ["/axis2/", "http://10.0.0.1:80/axis2/x?wsdl", "nowhere"].map(path_of);
        assert_eq!(places, [Some("/axis2/".to_owned()), Some("/axis2/x?wsdl".to_owned()), None]);
    }

    #[test]
    fn a_body_in_chunks_is_joined_and_half_a_chunk_is_no_answer() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
        let body = |rest: &str| response(format!("{head}{rest}").as_bytes(), false).map(|one| one.body);
        assert_eq!(body("4;x=y\r\n<a>b\r\n4\r\n</a>\r\n0\r\n\r\n"), Some(b"<a>b</a>".to_vec()));
        assert_eq!(body("4\r\n<a>"), None);
        assert_eq!(body("fffffffffffffffff\r\n<a>"), None);
    }
}
