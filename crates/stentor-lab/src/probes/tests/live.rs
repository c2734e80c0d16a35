//! Probes that ask a face.

use super::super::{contract, multicall, security, shapes};
use super::*;
use stentor_wire::Content;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[test]
fn a_soap_face_gives_a_contract_and_a_face_without_wsdl_gives_none() {
    run(async {
        let honest = server(PaperProtocol::Soap, Op::Echo, Behaviour::Honest).await;
        let mut face = taken_for(PaperProtocol::Soap, &honest);
        assert_eq!(word(&contract::specification(&mut face).await.expect("asked")), ProbeWord::Yes);
        assert_eq!(word(&contract::tools(&mut face).await.expect("asked")), ProbeWord::Yes);
        let silent = server(PaperProtocol::Rest, Op::Echo, Behaviour::Honest).await;
        let mut face = taken_for(PaperProtocol::Soap, &silent);
        let told = contract::specification(&mut face).await.expect("asked");
        assert!(word(&told) == ProbeWord::No && told.evidence.contains("405"), "{told:?}");
        assert_eq!(word(&contract::tools(&mut face).await.expect("asked")), ProbeWord::No);
    });
}

#[test]
fn a_rest_face_has_a_contract_only_where_it_offers_one() {
    run(async {
        let plain = server(PaperProtocol::Rest, Op::Echo, Behaviour::Honest).await;
        let mut face = taken_for(PaperProtocol::Rest, &plain);
        assert_eq!(word(&contract::specification(&mut face).await.expect("asked")), ProbeWord::No);
        let described = server(PaperProtocol::Soap, Op::Echo, Behaviour::Honest).await;
        let mut face = taken_for(PaperProtocol::Rest, &described);
        assert_eq!(word(&contract::specification(&mut face).await.expect("asked")), ProbeWord::Yes);
    });
}

#[test]
fn an_xml_rpc_face_names_its_methods_and_a_signature_makes_no_client() {
    run(async {
        let honest = server(PaperProtocol::XmlRpc, Op::Echo, Behaviour::Honest).await;
        let mut face = taken_for(PaperProtocol::XmlRpc, &honest);
        let told = contract::specification(&mut face).await.expect("asked");
        assert!(word(&told) == ProbeWord::Yes && told.evidence.contains("struct from struct"), "{told:?}");
        assert_eq!(word(&contract::tools(&mut face).await.expect("asked")), ProbeWord::No);
        let other = server(PaperProtocol::XmlRpc, Op::Sort, Behaviour::Honest).await;
        let told =
            contract::specification(&mut taken_for(PaperProtocol::XmlRpc, &other)).await.expect("asked");
        assert_eq!(word(&told), ProbeWord::No);
    });
}

#[test]
fn only_xml_rpc_answers_two_requests_in_one() {
    run(async {
        for (protocol, expected) in [
            (PaperProtocol::XmlRpc, ProbeWord::Yes),
            (PaperProtocol::Soap, ProbeWord::No),
            (PaperProtocol::Rest, ProbeWord::No),
        ] {
            let server = server(protocol, Op::Echo, Behaviour::Honest).await;
            let told = multicall::several(&mut taken_for(protocol, &server)).await.expect("asked");
            assert_eq!(word(&told), expected, "{protocol:?} {told:?}");
        }
        let other = server(PaperProtocol::XmlRpc, Op::Sort, Behaviour::Honest).await;
        let told = multicall::several(&mut taken_for(PaperProtocol::XmlRpc, &other)).await.expect("asked");
        assert_eq!(word(&told), ProbeWord::No, "{told:?}");
    });
}

#[test]
fn structs_and_arrays_must_come_back_whole() {
    run(async {
        for protocol in PaperProtocol::ALL {
            for (behaviour, expected) in
                [(Behaviour::Honest, ProbeWord::Yes), (Behaviour::Forgetful, ProbeWord::No)]
            {
                let server = server(protocol, Op::Array, behaviour).await;
                let told = shapes::structs(&mut taken_for(protocol, &server)).await.expect("asked");
                assert_eq!(word(&told), expected, "{protocol:?} {told:?}");
            }
        }
    });
}

#[test]
fn a_wrong_type_is_minded_by_a_contract_or_a_format_and_not_by_plain_xml() {
    run(async {
        for (protocol, expected) in [
            (PaperProtocol::Soap, ProbeWord::Yes),
            (PaperProtocol::XmlRpc, ProbeWord::Yes),
            (PaperProtocol::Rest, ProbeWord::No),
        ] {
            let server = server(protocol, Op::Sort, Behaviour::Honest).await;
            let told = shapes::strict(&mut taken_for(protocol, &server)).await.expect("asked");
            assert_eq!(word(&told), expected, "{protocol:?} {told:?}");
        }
        let without_contract = server(PaperProtocol::Rest, Op::Sort, Behaviour::Honest).await;
        let told =
            shapes::strict(&mut taken_for(PaperProtocol::Soap, &without_contract)).await.expect("asked");
        assert_eq!(word(&told), ProbeWord::No, "{told:?}");
    });
}

#[test]
fn harm_is_refused_by_every_face_and_the_next_request_answered() {
    run(async {
        for protocol in PaperProtocol::ALL {
            let server = server(protocol, Op::Echo, Behaviour::Honest).await;
            let mut face = taken_for(protocol, &server);
            let laughs = security::laughs(&mut face).await.expect("asked");
            assert!(laughs.evidence.contains("document types are not read"), "{laughs:?}");
            let external = security::external(&mut face).await.expect("asked");
            let depth = security::depth(&mut face).await.expect("asked");
            assert!(protocol == PaperProtocol::Rest || depth.evidence.contains("deeper than"), "{depth:?}");
            for told in [laughs, external, depth] {
                assert_eq!(word(&told), ProbeWord::Yes, "{protocol:?} {told:?}");
            }
        }
    });
}

/// Answers everybody that all is well, whatever was asked.
async fn yes_man(protocol: PaperProtocol) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listening");
    let address = listener.local_addr().expect("an address");
    let dialect = protocol.dialect().expect("known");
    let content = Content::Payload("placeholder".into());
    let body = dialect.write_answer(Op::Echo, &content).expect("written");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = vec![0; 4 << 20];
            let _ = stream.read(&mut asked).await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
        }
    });
    address
}

#[test]
fn a_face_that_takes_harm_is_told_so() {
    run(async {
        for protocol in PaperProtocol::ALL {
            let mut face = TrialFace::at(protocol, yes_man(protocol).await).expect("a face");
            let told = security::laughs(&mut face).await.expect("asked");
            assert!(word(&told) == ProbeWord::No && told.evidence.contains("taken"), "{told:?}");
        }
    });
}

#[test]
fn a_secured_message_is_refused_by_our_soap_face_and_the_others_have_no_place_for_it() {
    run(async {
        for (protocol, expected) in
            [(PaperProtocol::Soap, ProbeWord::No), (PaperProtocol::Rest, ProbeWord::Untestable)]
        {
            let server = server(protocol, Op::Echo, Behaviour::Honest).await;
            let told = security::message_served(&mut taken_for(protocol, &server)).await.expect("asked");
            assert_eq!(word(&told), expected, "{told:?}");
        }
        let mut face =
            TrialFace::at(PaperProtocol::Soap, yes_man(PaperProtocol::Soap).await).expect("a face");
        assert_eq!(word(&security::message_served(&mut face).await.expect("asked")), ProbeWord::Yes);
    });
}

#[test]
fn a_face_without_tls_makes_no_exchange_over_it() {
    run(async {
        let directory = tempfile::tempdir().expect("a directory");
        let context = ProbeContext { directory: directory.path().to_owned(), ..ProbeContext::default() };
        let plain = server(PaperProtocol::Rest, Op::Echo, Behaviour::Honest).await;
        let told = security::tls(&mut taken_for(PaperProtocol::Rest, &plain), &context).await.expect("tried");
        assert_eq!(word(&told), ProbeWord::No, "{told:?}");
    });
}

#[test]
fn a_probe_whose_face_is_gone_did_not_run_and_says_no_no() {
    run(async {
        let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listening");
        let address = gone.local_addr().expect("an address");
        drop(gone);
        let mut faces = vec![TrialFace::at(PaperProtocol::Soap, address).expect("a face")];
        let directory = tempfile::tempdir().expect("a directory");
        let context = ProbeContext { directory: directory.path().to_owned(), ..ProbeContext::default() };
        let probed = Probed::of(super::super::run(&mut faces, &context).await);
        let contract = probed.probes.iter().find(|one| one.id == "contract").expect("listed");
        assert_eq!((contract.answer, contract.has_run()), (ProbeAnswer::Word(ProbeWord::NotRun), false));
        assert!(!probed.have_all_run() && probed.probes.iter().any(ProbeResult::has_run));
    });
}
