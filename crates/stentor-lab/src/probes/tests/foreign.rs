//! Probes on subjects that are not ours.

use super::*;
use crate::subject::dialect::SubjectDialect;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

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

/// Answers everybody with these bytes, or with none.
async fn parrot(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listening");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = vec![0; 4 << 20];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[test]
fn what_our_own_bytes_tell_is_not_probed_of_others() {
    run(async {
        let echo = served("rest+xml", Op::Echo).await;
        for probe in ["customized", "types", "transport", "size", "tls"] {
            let told = ask(probe, &mut somebodys("rest+xml", echo.address)).await;
            assert_eq!(told.answer, ProbeAnswer::Word(ProbeWord::NotProbed), "{told:?}");
            assert!(told.has_run(), "{told:?}");
        }
        let told = ask("overhead", &mut somebodys("rest+xml", echo.address)).await;
        assert!(matches!(told.answer, ProbeAnswer::Number(bytes) if bytes > 10.0), "{told:?}");
        assert!(told.evidence.starts_with("its answer with 64 letters"), "{told:?}");
        let arrays = served("xmlrpc", Op::Array).await;
        let told = ask("named", &mut somebodys("xmlrpc", arrays.address)).await;
        assert_eq!(told.answer, ProbeAnswer::Word(ProbeWord::No), "{told:?}");
    });
}

#[test]
fn json_has_names_for_arrays_alone_and_no_entities() {
    run(async {
        let arrays = served("rest+json", Op::Array).await;
        let told = ask("named", &mut somebodys("rest+json", arrays.address)).await;
        assert_eq!(told.answer, ProbeAnswer::Word(ProbeWord::No));
        assert!(told.evidence.starts_with("the array is an element named objects"), "{told:?}");
        let echo = served("rest+json", Op::Echo).await;
        let told = ask("laughs", &mut somebodys("rest+json", echo.address)).await;
        assert_eq!(told.answer, ProbeAnswer::Word(ProbeWord::NotProbed), "{told:?}");
        assert_eq!(
            ask("depth", &mut somebodys("rest+json", echo.address)).await.answer,
            ProbeAnswer::Word(ProbeWord::Yes)
        );
        let sort = served("rest+json", Op::Sort).await;
        let told = ask("strict", &mut somebodys("rest+json", sort.address)).await;
        assert!(
            told.answer == ProbeAnswer::Word(ProbeWord::No) && told.evidence.contains("it is JSON"),
            "{told:?}"
        );
    });
}

#[test]
fn a_subject_that_ends_over_a_question_does_not_do_it() {
    run(async {
        let address = parrot("").await;
        let told = ask("contract", &mut somebodys("soap", address)).await;
        assert_eq!(told.answer, ProbeAnswer::Word(ProbeWord::No), "{told:?}");
        assert!(told.evidence.contains("ended without an answer"), "{told:?}");
        // One of ours that does so is broken.
        let told = ask("contract", &mut TrialFace::at(PaperProtocol::Soap, address).expect("a face")).await;
        assert_eq!(told.answer, ProbeAnswer::Word(ProbeWord::NotRun), "{told:?}");
    });
}

#[test]
fn what_our_reader_refuses_of_an_answer_is_no_refusal_of_the_subject() {
    run(async {
        let said = parrot("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nno answer").await;
        let told = ask("laughs", &mut somebodys("xmlrpc", said)).await;
        assert!(
            told.answer == ProbeAnswer::Word(ProbeWord::No) && told.evidence.contains("taken with 200"),
            "{told:?}"
        );
    });
}

#[test]
fn a_contract_that_cannot_be_read_to_its_end_is_one_and_what_hangs_on_it_is_not_probed() {
    run(async {
        let wsdl = "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'><import/></definitions>";
        let said: &'static str = Box::leak(format!("HTTP/1.1 200 OK\r\n\r\n{wsdl}").into_boxed_str());
        let address = parrot(said).await;
        assert_eq!(
            ask("contract", &mut somebodys("soap", address)).await.answer,
            ProbeAnswer::Word(ProbeWord::Yes)
        );
        assert_eq!(
            ask("tools", &mut somebodys("soap", address)).await.answer,
            ProbeAnswer::Word(ProbeWord::NotProbed)
        );
    });
}

#[test]
fn only_what_the_tables_have_is_probed() {
    let of = |name: &str| PaperProtocol::of(SubjectDialect::named(name).expect("known"));
    assert_eq!(
        ["soap", "xmlrpc", "rest+xml-dom", "rest+json"].map(of),
        [
            Some(PaperProtocol::Soap),
            Some(PaperProtocol::XmlRpc),
            Some(PaperProtocol::Rest),
            Some(PaperProtocol::Rest)
        ]
    );
    assert_eq!(["soap12", "grpc", "rest+protobuf", "socket+xml-sax"].map(of), [None; 4]);
}
