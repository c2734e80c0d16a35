//! Probes on faces that are as they should be, and on some that are not.

mod foreign;
mod judged;
mod live;
mod still;

use super::*;
use crate::subject::reference::Op;
use crate::subject::server::{Behaviour, SubjectServer};
use std::net::{Ipv4Addr, SocketAddr};

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Starts a server that speaks like one protocol.
async fn server(speaks: PaperProtocol, op: Op, behaviour: Behaviour) -> SubjectServer {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    SubjectServer::start(speaks.dialect().expect("known"), op, bind, behaviour).await.expect("listening")
}

/// Takes it for a face of a protocol, perhaps another than it speaks.
fn taken_for(protocol: PaperProtocol, server: &SubjectServer) -> TrialFace {
    TrialFace::at(protocol, server.address).expect("a face")
}

fn word(reply: &ProbeReply) -> ProbeWord {
    match reply.answer {
        ProbeAnswer::Word(word) => word,
        ProbeAnswer::Number(number) => panic!("{number} is no word"),
    }
}

fn number(reply: &ProbeReply) -> f64 {
    match reply.answer {
        ProbeAnswer::Number(number) => number,
        ProbeAnswer::Word(word) => panic!("{word:?} is no number"),
    }
}

/// Makes what a probe told of a protocol.
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
