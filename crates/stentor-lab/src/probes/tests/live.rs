//! Probes that send requests to a face.

use super::super::{contract, multicall, security, shapes};
use super::*;
use stentor_wire::Content;

#[tokio::test]
async fn a_soap_face_gives_a_contract_and_a_face_without_wsdl_gives_none() {
    let described = honest(Soap, Op::Echo).await;
    let mut face = taken_for(Soap, &described);
    assert_eq!(word(&contract::specification(&mut face).await.expect("asked")), Yes);
    assert_eq!(word(&contract::tools(&mut face).await.expect("asked")), Yes);
    let silent = honest(Rest, Op::Echo).await;
    let mut face = taken_for(Soap, &silent);
    let reply = contract::specification(&mut face).await.expect("asked");
    assert!(word(&reply) == No && reply.evidence.contains("405"), "{reply:?}");
    assert_eq!(word(&contract::tools(&mut face).await.expect("asked")), No);
}

#[tokio::test]
async fn a_rest_face_has_a_contract_only_where_it_offers_one() {
    let plain = honest(Rest, Op::Echo).await;
    let mut face = taken_for(Rest, &plain);
    assert_eq!(word(&contract::specification(&mut face).await.expect("asked")), No);
    let described = honest(Soap, Op::Echo).await;
    let mut face = taken_for(Rest, &described);
    assert_eq!(word(&contract::specification(&mut face).await.expect("asked")), Yes);
}

#[tokio::test]
async fn an_xml_rpc_face_names_its_methods_and_a_signature_makes_no_client() {
    let echo = honest(XmlRpc, Op::Echo).await;
    let mut face = taken_for(XmlRpc, &echo);
    let reply = contract::specification(&mut face).await.expect("asked");
    assert!(word(&reply) == Yes && reply.evidence.contains("struct from struct"), "{reply:?}");
    assert_eq!(word(&contract::tools(&mut face).await.expect("asked")), No);
    let other = honest(XmlRpc, Op::Sort).await;
    let reply = contract::specification(&mut taken_for(XmlRpc, &other)).await.expect("asked");
    assert_eq!(word(&reply), No);
}

#[tokio::test]
async fn only_xml_rpc_answers_two_requests_in_one() {
    for (protocol, expected) in [(XmlRpc, Yes), (Soap, No), (Rest, No)] {
        let server = honest(protocol, Op::Echo).await;
        let reply = multicall::several(&mut taken_for(protocol, &server)).await.expect("asked");
        assert_eq!(word(&reply), expected, "{protocol:?} {reply:?}");
    }
    let other = honest(XmlRpc, Op::Sort).await;
    let reply = multicall::several(&mut taken_for(XmlRpc, &other)).await.expect("asked");
    assert_eq!(word(&reply), No, "{reply:?}");
}

#[tokio::test]
async fn structs_and_arrays_must_come_back_whole() {
    for protocol in PaperProtocol::ALL {
        for (behaviour, expected) in [(Behaviour::Honest, Yes), (Behaviour::Forgetful, No)] {
            let server = server(protocol, Op::Array, behaviour).await;
            let reply = shapes::structs(&mut taken_for(protocol, &server)).await.expect("asked");
            assert_eq!(word(&reply), expected, "{protocol:?} {reply:?}");
        }
    }
}

#[tokio::test]
async fn a_wrong_type_is_minded_by_a_contract_or_a_format_and_not_by_plain_xml() {
    for (protocol, expected) in [(Soap, Yes), (XmlRpc, Yes), (Rest, No)] {
        let server = honest(protocol, Op::Sort).await;
        let reply = shapes::strict(&mut taken_for(protocol, &server)).await.expect("asked");
        assert_eq!(word(&reply), expected, "{protocol:?} {reply:?}");
    }
    let without_contract = honest(Rest, Op::Sort).await;
    let reply = shapes::strict(&mut taken_for(Soap, &without_contract)).await.expect("asked");
    assert_eq!(word(&reply), No, "{reply:?}");
}

#[tokio::test]
async fn harm_is_refused_by_every_face_and_the_next_request_answered() {
    for protocol in PaperProtocol::ALL {
        let server = honest(protocol, Op::Echo).await;
        let mut face = taken_for(protocol, &server);
        let laughs = security::laughs(&mut face).await.expect("asked");
        assert!(laughs.evidence.contains("document types are not read"), "{laughs:?}");
        let external = security::external(&mut face).await.expect("asked");
        let depth = security::depth(&mut face).await.expect("asked");
        assert!(protocol == Rest || depth.evidence.contains("deeper than"), "{depth:?}");
        for reply in [laughs, external, depth] {
            assert_eq!(word(&reply), Yes, "{protocol:?} {reply:?}");
        }
    }
}

/// Reports success to every client, regardless of the request.
async fn yes_man(protocol: PaperProtocol) -> SocketAddr {
    let content = Content::Payload("placeholder".into());
    let body = protocol.dialect().expect("known").write_answer(Op::Echo, &content).expect("written");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    parrot([head.as_bytes(), &body].concat(), false).await
}

#[tokio::test]
async fn a_face_that_takes_harm_is_told_so() {
    for protocol in PaperProtocol::ALL {
        let mut face = TrialFace::at(protocol, yes_man(protocol).await).expect("a face");
        let reply = security::laughs(&mut face).await.expect("asked");
        assert!(word(&reply) == No && reply.evidence.contains("accepted"), "{reply:?}");
    }
}

#[tokio::test]
async fn a_secured_message_is_refused_by_our_soap_face_and_the_others_have_no_place_for_it() {
    for (protocol, expected) in [(Soap, No), (Rest, Untestable)] {
        let server = honest(protocol, Op::Echo).await;
        let reply = security::message_served(&mut taken_for(protocol, &server)).await.expect("asked");
        assert_eq!(word(&reply), expected, "{reply:?}");
    }
    let mut face = TrialFace::at(Soap, yes_man(Soap).await).expect("a face");
    assert_eq!(word(&security::message_served(&mut face).await.expect("asked")), Yes);
}

#[tokio::test]
async fn a_face_without_tls_makes_no_exchange_over_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let context = ProbeContext { directory: directory.path().to_owned(), ..ProbeContext::default() };
    let plain = honest(Rest, Op::Echo).await;
    let reply = security::tls(&mut taken_for(Rest, &plain), &context).await.expect("tried");
    assert_eq!(word(&reply), No, "{reply:?}");
}

#[tokio::test]
async fn a_probe_whose_face_is_gone_did_not_run_and_says_no_no() {
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listening");
    let address = gone.local_addr().expect("an address");
    drop(gone);
    let mut faces = vec![TrialFace::at(Soap, address).expect("a face")];
    let directory = tempfile::tempdir().expect("a directory");
    let context = ProbeContext { directory: directory.path().to_owned(), ..ProbeContext::default() };
    let probed = Probed::of(super::super::run(&mut faces, &context).await);
    let contract = probed.probes.iter().find(|one| one.id == "contract").expect("listed");
    assert_eq!((contract.answer, contract.has_run()), (Word(NotRun), false));
    assert!(!probed.have_all_run() && probed.probes.iter().any(ProbeResult::has_run));
}

#[tokio::test]
async fn an_answer_ends_where_it_says_so_and_only_else_with_the_connection() {
    let plain = "HTTP/1.1 200 OK\r\n";
    let chunked = format!("{plain}Transfer-Encoding: Chunked\r\n\r\n");
    for (answer, stays, expected) in [
        (format!("{plain}content-length: 2\r\n\r\nab"), true, Some("ab")),
        (format!("{plain}content-length: 2\r\n\r\na"), false, None),
        ("HTTP/1.1 200".to_owned(), false, None),
        (format!("{plain}\r\nab"), false, Some("ab")),
        (format!("{chunked}4;x=y\r\n<a>b\r\n4\r\n</a>\r\n0\r\n\r\n"), true, Some("<a>b</a>")),
        (format!("{chunked}4\r\n<a>"), false, None),
        (format!("{chunked}fffffffffffffffff\r\n<a>"), true, None),
    ] {
        let mut face = TrialFace::at(Rest, parrot(answer.clone(), stays).await).expect("a face");
        let body = face.get(Op::Echo, "/").await.ok().map(|answer| answer.body);
        assert_eq!(body.as_deref(), expected.map(str::as_bytes), "{answer}");
    }
}
