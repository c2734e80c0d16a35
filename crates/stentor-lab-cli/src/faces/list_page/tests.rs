//! The same page in every form.

use super::*;
use stentor_wire::protobuf::fields::{put_field, put_number};

fn soap(record: &str) -> Vec<u8> {
    format!(
        r#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><ListResponse xmlns="urn:stentor:v1"><return>
        {record}</return></ListResponse></s:Body></s:Envelope>"#
    )
    .into_bytes()
}

fn record(name: &str, record: &str) -> Vec<u8> {
    format!("<?xml version=\"1.0\"?><{name} xmlns=\"urn:stentor:v1\">{record}</{name}>").into_bytes()
}

fn value(members: &str) -> Vec<u8> {
    format!(
        "<methodResponse><params><param><value><struct>{members}</struct></value></param></params></methodResponse>"
    )
    .into_bytes()
}

#[test]
fn a_page_of_topics_is_the_same_through_every_face() {
    let markup = "<topics><name>news</name><device_count>3</device_count></topics><next>news</next>";
    let xmlrpc = value(
        "<member><name>next</name><value>news</value></member>\
        <member><name>topics</name><value><array><data><value><struct><member><name>device_count</name><value><int>3</int>\
        </value></member><member><name>name</name><value>news</value></member></struct></value></data></array></value>\
        </member>",
    );
    let wanted = ListPage {
        topics: vec![object("news".to_owned(), 3)],
        next: Some("news".to_owned()),
        ..ListPage::default()
    };
    let (mut topic, mut message) = (Vec::new(), Vec::new());
    put_field(1, b"news", &mut topic);
    put_number(2, 3, &mut topic);
    put_field(1, &topic, &mut message);
    put_field(2, b"news", &mut message);
    for (reader, reply) in [
        (PageReader::Json, br#"{"topics":[{"name":"news","device_count":3}],"next":"news"}"#.to_vec()),
        (PageReader::Dom, soap(markup)),
        (PageReader::Sax, soap(markup)),
        (PageReader::Pull, record("TopicList", markup)),
        (PageReader::XmlRpc, xmlrpc),
        (PageReader::Message, message),
    ] {
        assert_eq!(ListPage::read(reader, ListKind::Topics, &reply).unwrap(), wanted, "{reader:?}");
    }
}

#[test]
fn a_page_of_devices_is_the_same_through_every_face_and_becomes_points() {
    let markup = "<devices><id>dev_1</id><tags>a</tags><tags>b</tags><state>active</state><user>ada</user></devices>\
        <devices><id>dev_2</id></devices>";
    let xmlrpc = value(
        "<member><name>devices</name><value><array><data><value><struct><member><name>tags</name><value><array><data>\
        <value>a</value><value>b</value></data></array></value></member><member><name>user</name><value>ada</value></member>\
        </struct></value><value><struct></struct></value></data></array></value></member>",
    );
    let ada = ListedDevice { user: "ada".to_owned(), tags: vec!["a".to_owned(), "b".to_owned()] };
    let wanted =
        ListPage { devices: vec![ada.clone(), ListedDevice::default()], next: None, ..ListPage::default() };
    let (mut device, mut message, mut frame) = (Vec::new(), Vec::new(), Vec::new());
    for (number, text) in [(1, "dev_1"), (5, "a"), (5, "b"), (12, "ada")] {
        put_field(number, text.as_bytes(), &mut device);
    }
    put_field(1, &device, &mut message);
    put_field(1, b"", &mut message);
    put_number(1, 7, &mut frame);
    put_field(2, &message, &mut frame);
    let grpc = [&[0, 0, 0, 0, 0][..], &message].concat();
    let json = br#"{"devices":[{"id":"dev_1","user":"ada","tags":["a","b"]},{"id":"dev_2"}]}"#;
    for (reader, reply) in [
        (PageReader::Json, json.to_vec()),
        (PageReader::Dom, record("DeviceList", markup)),
        (PageReader::Sax, record("DeviceList", markup)),
        (PageReader::Pull, record("DeviceList", markup)),
        (PageReader::XmlRpc, xmlrpc),
        (PageReader::GrpcMessage, grpc),
        (PageReader::FramedMessage, frame),
    ] {
        assert_eq!(ListPage::read(reader, ListKind::Devices, &reply).unwrap(), wanted, "{reader:?}");
    }
    assert_eq!(ListedDevice::of_point(&ada.clone().point()), ada);
}

#[test]
fn a_fault_and_a_refusal_are_no_pages() {
    let fault = br#"<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>
        <faultcode>s:Client</faultcode><faultstring>unauthorized</faultstring></s:Fault></s:Body></s:Envelope>"#;
    let (mut error, mut frame) = (Vec::new(), Vec::new());
    put_field(1, b"unauthorized", &mut error);
    put_field(3, &error, &mut frame);
    for (reader, reply) in [
        (PageReader::Dom, &fault[..]),
        (PageReader::Sax, &fault[..]),
        (PageReader::FramedMessage, frame.as_slice()),
    ] {
        let said = ListPage::read(reader, ListKind::Topics, reply).unwrap_err().to_string();
        assert!(said.contains("unauthorized"), "{reader:?}: {said}");
    }
    assert!(
        ListPage::read(PageReader::GrpcMessage, ListKind::Topics, b"").is_err(),
        "gRPC without a message"
    );
}
