//! Golden bytes: the format that other programs must understand does not change by accident.

use super::*;
use crate::xmlrpc::{Call, RpcFault};

#[track_caller]
fn same(bytes: Result<Vec<u8>, WireError>, expected: &str) {
    let text = String::from_utf8(bytes.expect("written")).expect("UTF-8");
    let expected: String = expected.lines().map(str::trim_start).collect();
    assert_eq!(text, format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{expected}"));
}

#[test]
fn content_as_xml() {
    same(Content::Numbers(vec![1, -20]).to_xml(), "<numbers><n>1</n><n>-20</n></numbers>");
    same(Content::Texts(vec![]).to_xml(), "<texts/>");
    let objects = "<objects><object><id>-7</id><name>a&lt;b&gt; &amp; \"c\"</name><price>1.5</price></object></objects>";
    same(small_content().to_xml(), objects);
    let xml = String::from_utf8(Content::Points(vec![point(1)]).to_xml().expect("written")).expect("UTF-8");
    assert!(xml.contains("<points><point><id>1-0</id><name>1-1</name><category>1-2</category>"), "{xml}");
    assert!(xml.ends_with("<picture>1-12</picture></point></points>"), "{xml}");
}

#[test]
fn content_as_json() {
    let json =
        |content: &Content| String::from_utf8(json::write_content(content).expect("written")).expect("UTF-8");
    assert_eq!(json(&Content::Numbers(vec![1, -20])), r#"{"numbers":[1,-20]}"#);
    let objects = r#"{"objects":[{"id":-7,"name":"a<b> & \"c\"","price":1.5}]}"#;
    assert_eq!(json(&small_content()), objects);
}

#[test]
fn content_as_protocol_buffers() {
    // Field 2 of length 4, in it field 1 of length 2, packed: zigzag of 1 and of -2.
    assert_eq!(protobuf::write(&Content::Numbers(vec![1, -2])), [0x12, 4, 0x0a, 2, 2, 3]);
    assert_eq!(protobuf::write(&Content::Payload("ab".into())), [0x0a, 2, b'a', b'b']);
    let texts = Content::Texts(vec!["a".into(), String::new()]);
    assert_eq!(protobuf::write(&texts), [0x1a, 5, 0x0a, 1, b'a', 0x0a, 0]);
    let fields = protobuf::SCHEMA.lines().skip_while(|line| !line.starts_with("message Point {")).skip(1);
    let names = fields.filter_map(|line| line.trim().strip_prefix("string ")?.split(' ').next());
    assert!(names.eq(content::POINT_FIELD_NAMES));
}

#[test]
fn a_frame_has_four_bytes_of_length_in_front() {
    assert_eq!(frame::write(b"abc"), Ok(vec![0, 0, 0, 3, b'a', b'b', b'c']));
}

#[test]
fn an_envelope_of_soap_11() {
    let envelope =
        soap::Envelope::request(soap::Version::V11, "urn:lab", "echo", &Content::Payload("x".into()));
    let expected = "\
        <soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\">
        <soap:Body><echo xmlns=\"urn:lab\"><payload>x</payload></echo></soap:Body>
        </soap:Envelope>";
    same(soap::write(&envelope), expected);
}

#[test]
fn faults_of_both_versions() {
    let fault = soap::SoapFault::new(soap::SoapFaultCode::Sender, "no");
    let expected = "\
        <soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Body><soap:Fault>
        <faultcode>soap:Client</faultcode><faultstring>no</faultstring>
        </soap:Fault></soap:Body></soap:Envelope>";
    same(soap::write(&soap::Envelope::fault(soap::Version::V11, fault.clone())), expected);
    let expected = "\
        <soap:Envelope xmlns:soap=\"http://www.w3.org/2003/05/soap-envelope\"><soap:Body><soap:Fault>
        <soap:Code><soap:Value>soap:Sender</soap:Value></soap:Code>
        <soap:Reason><soap:Text xml:lang=\"en\">no</soap:Text></soap:Reason>
        </soap:Fault></soap:Body></soap:Envelope>";
    same(soap::write(&soap::Envelope::fault(soap::Version::V12, fault)), expected);
}

#[test]
fn calls_and_faults_of_xml_rpc() {
    let params =
        vec![Value::Int(1), Value::Int(1 << 40), Value::Record(vec![("a".into(), Value::Bool(true))])];
    let expected = "\
        <methodCall><methodName>lab.echo</methodName><params>
        <param><value><int>1</int></value></param>
        <param><value><i8>1099511627776</i8></value></param>
        <param><value><struct><member><name>a</name><value><boolean>1</boolean></value></member></struct></value></param>
        </params></methodCall>";
    same(xmlrpc::write_call(&Call { method: "lab.echo".into(), params }), expected);
    let expected = "\
        <methodResponse><fault><value><struct>
        <member><name>faultCode</name><value><int>4</int></value></member>
        <member><name>faultString</name><value><string>too many</string></value></member>
        </struct></value></fault></methodResponse>";
    same(xmlrpc::write_response(&Err(RpcFault { code: 4, text: "too many".into() })), expected);
}
