//! Probes on faces that are as they should be, and on some that are not.

mod foreign;
mod judged;
mod live;
mod still;

use super::*;
use crate::subject::reference::Op;
use crate::subject::server::{Behaviour, Server};
use std::net::{Ipv4Addr, SocketAddr};

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Starts a server that speaks like one protocol.
async fn server(speaks: Protocol, op: Op, behaviour: Behaviour) -> Server {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Server::start(speaks.dialect().expect("known"), op, bind, behaviour).await.expect("listening")
}

/// Takes it for a face of a protocol, perhaps another than it speaks.
fn taken_for(protocol: Protocol, server: &Server) -> Face {
    Face::at(protocol, server.address).expect("a face")
}

fn word(reply: &Reply) -> Word {
    match reply.answer {
        Answer::Word(word) => word,
        Answer::Number(number) => panic!("{number} is no word"),
    }
}

fn number(reply: &Reply) -> f64 {
    match reply.answer {
        Answer::Number(number) => number,
        Answer::Word(word) => panic!("{word:?} is no number"),
    }
}

/// Makes what a probe told of a protocol.
fn told(id: &str, feature: &str, subject: &str, answer: Answer) -> ProbeResult {
    ProbeResult {
        id: id.into(),
        feature: feature.into(),
        subject: subject.into(),
        does: "Tries.".into(),
        kind: Kind::Measured,
        answer,
        unit: String::new(),
        evidence: "seen".into(),
    }
}
