//! Probes on foreign subjects.

use super::*;
use crate::subject::dialect::SubjectDialect;

fn somebodys(dialect: &str, address: SocketAddr) -> TrialFace {
    let dialect = SubjectDialect::named(dialect).expect("known");
    let protocol = PaperProtocol::of(dialect).expect("in the tables");
    let mut face = TrialFace::at(protocol, address).expect("a face");
    (face.dialect, face.is_ours, face.encrypts) = (dialect, false, false);
    face
}

/// Serves one operation in any dialect.
async fn served(dialect: &str, op: Op) -> SubjectServer {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    SubjectServer::start(SubjectDialect::named(dialect).expect("known"), op, bind, Behaviour::Honest)
        .await
        .expect("listening")
}

async fn ask(id: &str, face: &mut TrialFace) -> ProbeResult {
    let probe = list().into_iter().find(|one| one.id == id).expect("listed");
    probe.ask(face, &ProbeContext::default()).await
}

#[tokio::test]
async fn what_our_own_bytes_tell_is_not_probed_of_others() {
    let echo = served("rest+xml", Op::Echo).await;
    for probe in ["customized", "types", "transport", "size", "tls"] {
        let reply = ask(probe, &mut somebodys("rest+xml", echo.address)).await;
        assert_eq!(reply.answer, Word(NotProbed), "{reply:?}");
        assert!(reply.has_run(), "{reply:?}");
    }
    let reply = ask("overhead", &mut somebodys("rest+xml", echo.address)).await;
    assert!(matches!(reply.answer, Number(bytes) if bytes > 10.0), "{reply:?}");
    assert!(reply.evidence.starts_with("its answer with 64 letters"), "{reply:?}");
    let arrays = served("xmlrpc", Op::Array).await;
    let reply = ask("named", &mut somebodys("xmlrpc", arrays.address)).await;
    assert_eq!(reply.answer, Word(No), "{reply:?}");
}

#[tokio::test]
async fn json_has_names_for_arrays_alone_and_no_entities() {
    let arrays = served("rest+json", Op::Array).await;
    let reply = ask("named", &mut somebodys("rest+json", arrays.address)).await;
    assert_eq!(reply.answer, Word(No));
    assert!(reply.evidence.starts_with("the array is an element named objects"), "{reply:?}");
    let echo = served("rest+json", Op::Echo).await;
    let reply = ask("laughs", &mut somebodys("rest+json", echo.address)).await;
    assert_eq!(reply.answer, Word(NotProbed), "{reply:?}");
    assert_eq!(ask("depth", &mut somebodys("rest+json", echo.address)).await.answer, Word(Yes));
    let sort = served("rest+json", Op::Sort).await;
    let reply = ask("strict", &mut somebodys("rest+json", sort.address)).await;
    assert!(reply.answer == Word(No) && reply.evidence.contains("it is JSON"), "{reply:?}");
}

#[tokio::test]
async fn a_subject_that_ends_over_a_question_does_not_do_it() {
    let address = parrot("", false).await;
    let reply = ask("contract", &mut somebodys("soap", address)).await;
    assert_eq!(reply.answer, Word(No), "{reply:?}");
    assert!(reply.evidence.contains("ended without an answer"), "{reply:?}");
    // For a subject of ours the same result is a defect.
    let reply = ask("contract", &mut TrialFace::at(Soap, address).expect("a face")).await;
    assert_eq!(reply.answer, Word(NotRun), "{reply:?}");
}

#[tokio::test]
async fn what_our_reader_refuses_of_an_answer_is_no_refusal_of_the_subject() {
    let said = parrot("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nno answer", false).await;
    let reply = ask("laughs", &mut somebodys("xmlrpc", said)).await;
    assert!(reply.answer == Word(No) && reply.evidence.contains("accepted with 200"), "{reply:?}");
}

#[tokio::test]
async fn a_contract_that_cannot_be_read_to_its_end_is_one_and_what_hangs_on_it_is_not_probed() {
    let wsdl = "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'><import/></definitions>";
    let address = parrot(format!("HTTP/1.1 200 OK\r\n\r\n{wsdl}"), false).await;
    assert_eq!(ask("contract", &mut somebodys("soap", address)).await.answer, Word(Yes));
    assert_eq!(ask("tools", &mut somebodys("soap", address)).await.answer, Word(NotProbed));
}

#[test]
fn only_what_the_tables_have_is_probed() {
    let of = |name: &str| PaperProtocol::of(SubjectDialect::named(name).expect("known"));
    assert_eq!(
        ["soap", "xmlrpc", "rest+xml-dom", "rest+json"].map(of),
        [Some(Soap), Some(XmlRpc), Some(Rest), Some(Rest)]
    );
    assert_eq!(["soap12", "grpc", "rest+protobuf", "socket+xml-sax"].map(of), [None; 4]);
}
