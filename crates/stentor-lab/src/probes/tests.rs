//! Probes on correct faces, and on some defective ones.

mod foreign;
mod judged;
mod live;
mod still;

use super::PaperProtocol::{Rest, Soap, XmlRpc};
use super::ProbeAnswer::{Number, Word};
use super::ProbeWord::{No, NotCounted, NotProbed, NotRun, Untestable, Yes};
use super::*;
use crate::subject::reference::Op;
use crate::subject::server::{Behaviour, SubjectServer};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Starts a server that speaks one protocol.
async fn server(speaks: PaperProtocol, op: Op, behaviour: Behaviour) -> SubjectServer {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    SubjectServer::start(speaks.dialect().expect("known"), op, bind, behaviour).await.expect("listening")
}

/// Makes a face of a protocol for a server that may speak another protocol.
fn taken_for(protocol: PaperProtocol, server: &SubjectServer) -> TrialFace {
    TrialFace::at(protocol, server.address).expect("a face")
}

/// Starts an honest server.
async fn honest(speaks: PaperProtocol, op: Op) -> SubjectServer {
    server(speaks, op, Behaviour::Honest).await
}

/// Sends these bytes, or none, to every client, and hangs up unless `stays` is set.
async fn parrot(answer: impl Into<Vec<u8>>, stays: bool) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listening");
    let address = listener.local_addr().expect("an address");
    let answer = answer.into();
    tokio::spawn(async move {
        let mut held_streams: Vec<TcpStream> = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4 << 20];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer).await;
            held_streams.extend(stays.then_some(stream));
        }
    });
    address
}

fn word(reply: &ProbeReply) -> ProbeWord {
    match reply.answer {
        Word(word) => word,
        Number(number) => panic!("{number} is no word"),
    }
}

fn number(reply: &ProbeReply) -> f64 {
    match reply.answer {
        Number(number) => number,
        Word(word) => panic!("{word:?} is no number"),
    }
}

/// Makes the result of a probe for a protocol.
fn told(id: &str, feature: &str, subject: &str, answer: ProbeAnswer) -> ProbeResult {
    ProbeResult {
        id: id.into(),
        feature: feature.into(),
        subject: subject.into(),
        does: "Tries.".into(),
        kind: ProbeKind::Measured,
        answer,
        unit: String::new(),
        evidence: "seen".into(),
    }
}
