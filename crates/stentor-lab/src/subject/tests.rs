mod bodies;

use super::client::SubjectClient;
use super::dialect::{DIALECTS, SubjectDialect, ValueFormat};
use super::protocol::{Report, SubjectOrder, SubjectRole};
use super::reference::{Digest, Op, own_data};
use super::sample::{ClientSample, ServerSample};
use super::server::{Behaviour, SubjectServer};
use super::setup::SubjectSetup;
use super::speaker::speak;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use stentor_wire::Content;

fn factors(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect()
}

/// Serves an operation in a dialect.
async fn served(dialect: SubjectDialect, op: Op) -> SubjectServer {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    SubjectServer::start(dialect, op, bind, Behaviour::Honest).await.expect("listening")
}

fn named(dialect: &str) -> SubjectDialect {
    SubjectDialect::named(dialect).expect("known")
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

#[tokio::test]
async fn every_dialect_carries_every_operation() {
    for dialect in DIALECTS {
        for op in Op::ALL {
            let server = served(dialect, op).await;
            let mut client = SubjectClient::connect(dialect, op, server.address).await.expect("connected");
            for (seq, kind) in ["Int", "String", "Object"].into_iter().enumerate() {
                let exchange = op.exchange(&factors(&[("type", kind)]), seq as u64).expect("sense");
                let (sample, answer) =
                    client.exchange(seq as u64, 7, &exchange.request).await.expect("answered");
                assert_eq!(answer, exchange.answer, "{} {}", dialect.name(), op.word());
                assert!(sample.is_in_order() && sample.bytes > 0 && sample.t_intended == 7, "{sample:?}");
            }
            let seen: Vec<_> = server.take_samples().iter().map(|one| (one.seq, one.status)).collect();
            assert_eq!(seen, [(0, 0), (1, 0), (2, 0)]);
        }
    }
}

#[tokio::test]
async fn a_request_that_makes_no_sense_fails_and_the_next_is_answered() {
    for dialect in DIALECTS {
        let server = served(dialect, Op::Sort).await;
        let mut client = SubjectClient::connect(dialect, Op::Sort, server.address).await.expect("connected");
        let nonsense = client.exchange(0, 0, &Content::Payload("x".into())).await;
        // SOAP and XML-RPC can express a refusal in the body; the other formats use the status.
        let has_faults = matches!(dialect.format, ValueFormat::Soap(_) | ValueFormat::XmlRpc);
        let is_refused = match nonsense {
            Err(SubjectError::Fault(_)) => has_faults,
            Err(SubjectError::Exchange(_)) => !has_faults,
            _ => false,
        };
        assert!(is_refused, "{}: {nonsense:?}", dialect.name());
        let (_, sorted) = client.exchange(1, 0, &Content::Numbers(vec![2, 1])).await.expect("answered");
        assert_eq!(sorted, Content::Numbers(vec![1, 2]));
        let statuses: Vec<_> = server.take_samples().iter().map(|one| one.status).collect();
        assert_eq!(statuses, [1, 0]);
    }
}

#[tokio::test]
async fn an_xml_rpc_server_names_its_methods_and_a_foreign_call_fails_as_before() {
    use stentor_wire::{DocumentLimits, Value, xmlrpc};
    let dialect = named("xmlrpc");
    let server = served(dialect, Op::Sort).await;
    for (method, expected) in [("system.listMethods", Some("lab.sort")), ("system.nothing", None)] {
        let call = xmlrpc::Call { method: method.into(), params: vec![] };
        let body = xmlrpc::write_call(&call).expect("written");
        let (_, answer) = asked(&server, "POST /", &body).await;
        let outcome = xmlrpc::read_response(&answer, &DocumentLimits::default()).expect("an answer");
        let first = match outcome.as_ref().ok() {
            Some(Value::List(names)) => names.first().and_then(Value::as_text),
            _ => None,
        };
        assert_eq!(first, expected, "{method}");
    }
}

/// Sends a plain HTTP request and returns the status and the body.
async fn asked(server: &SubjectServer, line: &str, body: &[u8]) -> (u16, Vec<u8>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(server.address).await.expect("connected");
    let head = format!(
        "{line} HTTP/1.1\r\nHost: lab.test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).await.expect("sent");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.expect("answered");
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let status = String::from_utf8_lossy(&all[9..12]).parse().expect("a status");
    (status, all.split_off(end + 4))
}

#[tokio::test]
async fn a_soap_server_describes_itself_and_others_do_not() {
    let soap = named("soap");
    let server = served(soap, Op::Echo).await;
    let (status, body) = asked(&server, "GET /echo?wsdl", &[]).await;
    let service =
        stentor_wire::wsdl::read(&body, &stentor_wire::DocumentLimits::default()).expect("a description");
    assert_eq!((status, service.address.as_str()), (200, "http://lab.test/echo"));
    assert_eq!(service.operations[0].action, "urn:stentor:lab#echo");
    let json = named("rest+json");
    let server = served(json, Op::Echo).await;
    assert_eq!(asked(&server, "GET /echo?wsdl", &[]).await, (405, Vec::new()));
}

#[test]
fn contents_follow_from_the_seed_in_the_same_way_everywhere() {
    let exchange = |op: Op, pairs: &[(&str, &str)]| op.exchange(&factors(pairs), 1).expect("sense");
    // 1103527590 div 65536, and so on: the values required of any other language.
    let numbers = exchange(Op::Array, &[("type", "Int"), ("items", "4")]);
    assert_eq!(numbers.request, Content::Payload("Int 4 1".into()));
    assert_eq!(numbers.answer, Content::Numbers(vec![16838, 5758, 10113, 17515]));
    let echo = exchange(Op::Echo, &[("payload", "4")]);
    assert_eq!(echo.answer, Content::Payload("qmzr".into()));
    assert_eq!(echo.request, echo.answer);
    let Content::Points(points) = exchange(Op::Points, &[("poi", "2")]).answer else { panic!("points") };
    let letters: usize = points[1].fields().iter().map(|field| field.len()).sum();
    assert_eq!((points.len(), letters), (2, 600));
    let mut digest = Digest::default();
    digest.add(&echo.answer);
    assert_eq!(digest.hex(), format!("{:016x}", fnv(b"qmzr\n")));
}

/// FNV-1a again, in the form of its authors.
#[test]
fn own_points_have_the_letters_of_a_point_and_their_pages_make_the_whole() {
    let factors = |more: &[(&str, &str)]| {
        let all = [("own", "data"), ("poi", "150"), ("letters", "752")].iter().chain(more);
        all.map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect()
    };
    let answer = |factors: &BTreeMap<String, String>, seq| match Op::Points
        .exchange_number(factors, 7, seq)
        .expect("sense")
        .answer
    {
        Content::Points(points) => points,
        other => panic!("{other:?}"),
    };
    let whole = answer(&factors(&[]), 3);
    assert!(whole.iter().all(|point| point.fields().concat().len() == 752), "{:?}", whole[0]);
    let paged = factors(&[("page", "64")]);
    let pages: Vec<_> = (0..3).flat_map(|page| answer(&paged, page)).collect();
    assert_eq!((pages.len(), pages), (150, whole));
}

#[test]
fn own_data_are_in_order_and_the_same_for_every_exchange_of_a_run() {
    let own = factors(&[("own", "data"), ("type", "Int"), ("items", "3200")]);
    let answer = |seq| Op::Array.exchange_number(&own, 7, seq).expect("makes sense").answer;
    assert_eq!(answer(0), answer(5));
    let Content::Numbers(numbers) = answer(0) else { panic!("{:?}", answer(0)) };
    assert!(numbers.is_sorted() && numbers.len() == 3_200);
    assert!(numbers.iter().all(|number| number.to_string().len() == 5), "their texts are in the same order");
    let Some(Content::Objects(items)) = own_data("Object", 3_200, 7) else { panic!("no objects") };
    assert!(items.is_sorted_by(|one, next| one.name < next.name), "a name is given once");
    assert!(items.iter().all(|item| (1..=4).contains(&item.id)));
    assert_eq!(own_data("Point", 1, 7), None);
}

fn fnv(bytes: &[u8]) -> u64 {
    let mut hash = 14_695_981_039_346_656_037_u64;
    for byte in bytes {
        hash ^= u64::from(*byte);
        hash = hash.wrapping_mul(1_099_511_628_211);
    }
    hash
}

#[test]
fn samples_are_64_bytes_in_the_order_of_the_protocol() {
    let sample = ClientSample {
        seq: 1,
        t_intended: 2,
        t_start: 3,
        t_ser_end: 4,
        t_first_byte: 5,
        t_end: 6,
        t_deser_end: 7,
        status: 8,
        flags: 9,
        bytes: 10,
    };
    let bytes = sample.to_bytes();
    let words: Vec<u8> = bytes.iter().step_by(8).copied().collect();
    assert_eq!(words, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!((bytes[58], bytes[60], bytes.iter().filter(|byte| **byte != 0).count()), (9, 10, 10));
    assert_eq!(ClientSample::of_bytes(&bytes), sample);
    let sample = ServerSample {
        seq: 1,
        t_recv: -2,
        t_deser_end: 3,
        t_work_end: 4,
        t_ser_end: 5,
        status: 6,
        flags: 3,
        bytes: 7,
    };
    assert_eq!(ServerSample::of_bytes(&sample.to_bytes()), sample);
}

#[test]
fn orders_and_reports_are_these_lines() {
    let order = |line: &str| serde_json::from_str::<SubjectOrder>(line).expect(line);
    let line = r#"{"order":"prepare","role":"server","op":"echo","bind":"127.0.0.1:0","seed":7,"later":[1]}"#;
    let SubjectOrder::Prepare(prepare) = order(line) else { panic!("prepare") };
    assert_eq!(
        (prepare.role, prepare.op, prepare.seed, prepare.target),
        (SubjectRole::Server, Op::Echo, 7, None)
    );
    let arm = r#"{"order":"arm","schedule":{"kind":"open","interval_ns":500},"count":3,"out":"/tmp/x"}"#;
    assert_eq!(serde_json::to_string(&order(arm)).expect("written"), arm);
    assert_eq!(order(r#"{"order":"go","t0_ns":5}"#), SubjectOrder::Go { t0_ns: 5 });
    let report = Report::Done { n: 1, errors: 0, digest: "00".into() };
    let line = r#"{"report":"done","n":1,"errors":0,"digest":"00"}"#;
    assert_eq!(serde_json::to_string(&report).expect("written"), line);
}

#[test]
fn a_definition_names_its_dialect_first() {
    let text =
        "id = 'rest+xml/cxf-2.7.4/jdk17'\nops = ['sort', 'echo']\nroles = ['server']\nrun = ['java']\n";
    let definition = Definition::parse(text).expect("readable");
    assert_eq!(definition.dialect().expect("known").name(), "rest+xml");
    let unknown = Definition::parse(&text.replace("rest+xml", "corba")).expect("readable");
    assert!(unknown.dialect().expect_err("unknown").to_string().contains("rest+json, rest+xml"));
    assert!(Definition::parse(&text.replace("roles", "rolls")).is_err());
}

/// Feeds lines to a subject and returns its reports.
fn heard(lines: &str) -> (Result<(), SubjectError>, Vec<Report>) {
    let mut said = Vec::new();
    let json = named("rest+json");
    let ended = run(speak(json, Behaviour::Honest, lines.as_bytes(), &mut said));
    let text = String::from_utf8(said).expect("UTF-8");
    (ended, text.lines().map(|line| serde_json::from_str(line).expect(line)).collect())
}

#[test]
fn a_number_of_services_that_cannot_be_done_is_refused_and_not_replaced() {
    let services =
        |level: &str| SubjectSetup::of(&factors(&[("service", level)]), 1).map(|setup| setup.services);
    assert_eq!((services("1").unwrap(), services("100000").unwrap()), (1, 100_000));
    assert_eq!(SubjectSetup::of(&factors(&[]), 1).unwrap().services, 1);
    for level in ["", "0", "-1", "1.5", "100001", "200 sorts"] {
        let error = services(level).expect_err(level).to_string();
        assert!(error.contains(&format!("service is {level:?}")), "{error}");
    }
}

#[test]
fn orders_at_the_wrong_time_are_refused_in_words() {
    let (ended, reports) =
        heard("{\"order\":\"go\",\"t0_ns\":0}\n{\"order\":\"hello\"}\n{\"order\":\"stop\"}\n");
    assert!(ended.is_ok());
    assert!(matches!(
        &reports[..],
        [Report::Error { .. }, Report::Hello { lsp: 1, .. }, Report::Done { n: 0, .. }]
    ));
}

#[test]
fn a_line_without_end_is_not_waited_for() {
    let (ended, reports) = heard(&"x".repeat(protocol::LINE_MAX_BYTES + 10));
    assert!(matches!(ended, Err(SubjectError::Babble { .. })) && reports.is_empty());
}

proptest! {
    #[test]
    fn whatever_is_ordered_is_followed_or_refused(
        lines in prop::collection::vec(prop_oneof![
            "\\PC{0,40}",
            Just("{\"order\":\"hello\"}".to_owned()),
            Just("{\"order\":\"go\",\"t0_ns\":-5}".to_owned()),
            Just("{\"order\":\"prepare\",\"role\":\"client\",\"op\":\"sort\",\"seed\":1}".to_owned()),
            Just("{\"order\":\"prepare\",\"role\":\"server\",\"op\":\"sort\",\"seed\":1}".to_owned()),
        ], 0..6)
    ) {
        let _ = heard(&lines.join("\n"));
    }
}
