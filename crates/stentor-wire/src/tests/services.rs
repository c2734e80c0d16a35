//! SOAP, WSDL and XML-RPC as other programs speak them.

use super::*;
use crate::soap::{Envelope, HeaderBlock, SoapBody, SoapFault, SoapFaultCode, Version};
use crate::wsdl::{Operation, Service};
use crate::xml::dom::Element;
use crate::xmlrpc::Call;

fn envelope(version: Version, header: &str, body: &str) -> Vec<u8> {
    let namespace = version.namespace();
    format!("<e:Envelope xmlns:e='{namespace}'>{header}<e:Body>{body}</e:Body></e:Envelope>").into_bytes()
}

#[test]
fn a_block_that_must_be_understood_stops_who_does_not() {
    for (version, flag) in [(Version::V11, "1"), (Version::V12, "true")] {
        let header =
            format!("<e:Header><t:pay xmlns:t='urn:t' e:mustUnderstand='{flag}'>5</t:pay></e:Header>");
        let bytes = envelope(version, &header, "");
        let error = soap::read(&bytes, &limits(), &[]).expect_err("refused");
        assert_eq!(error, WireError::NotUnderstood("pay".into()));
        assert_eq!(SoapFault::of_error(&error).code, SoapFaultCode::MustUnderstand);
        let read = soap::read(&bytes, &limits(), &[("urn:t", "pay")]).expect("understood");
        assert!(read.headers[0].must_understand && read.headers[0].element.is("urn:t", "pay"));
    }
}

#[test]
fn a_block_for_somebody_else_stops_nobody() {
    let block = "<t:pay xmlns:t='urn:t' e:mustUnderstand='1' e:actor='urn:a-proxy'/>";
    let bytes = envelope(Version::V11, &format!("<e:Header>{block}</e:Header>"), "");
    assert!(soap::read(&bytes, &limits(), &[]).is_ok());
}

#[test]
fn a_marked_block_comes_back_marked() {
    let element = Element::of("urn:t", "pay").with_text("5");
    let body = SoapBody::Elements(vec![]);
    for version in [Version::V11, Version::V12] {
        let block = HeaderBlock { element: element.clone(), must_understand: true };
        let written = Envelope { version, headers: vec![block], body: body.clone() };
        let bytes = soap::write(&written).expect("written");
        assert_eq!(soap::read(&bytes, &limits(), &[("urn:t", "pay")]), Ok(written));
    }
}

#[test]
fn another_version_of_soap_is_a_version_mismatch() {
    let bytes = b"<Envelope xmlns='http://www.w3.org/2001/12/soap-envelope'><Body/></Envelope>";
    let error = soap::read(bytes, &limits(), &[]).expect_err("refused");
    assert_eq!(SoapFault::of_error(&error).code, SoapFaultCode::VersionMismatch);
}

#[test]
fn faults_come_back_with_their_detail_and_foreign_codes_are_the_receivers() {
    let detail = vec![Element::of("urn:t", "why").with_text("too late")];
    for version in [Version::V11, Version::V12] {
        let fault =
            SoapFault { detail: detail.clone(), ..SoapFault::new(SoapFaultCode::Receiver, "not <now>") };
        let bytes = soap::write(&Envelope::fault(version, fault.clone())).expect("written");
        let read = soap::read(&bytes, &limits(), &[]).expect("read");
        assert_eq!(read.response_content("urn:lab", "echo"), Ok(Err(fault)));
    }
    let code = |code: &str| {
        let fault = format!("<e:Fault><faultcode>{code}</faultcode><faultstring>no</faultstring></e:Fault>");
        let read = soap::read(&envelope(Version::V11, "", &fault), &limits(), &[]).expect("read");
        let SoapBody::Fault(fault) = read.body else { panic!("a fault") };
        fault.code
    };
    assert_eq!(code("e:Client.Authentication"), SoapFaultCode::Sender);
    assert_eq!(code("soapenv:Server.userException"), SoapFaultCode::Receiver);
    assert_eq!(code("Odd"), SoapFaultCode::Receiver);
}

#[test]
fn an_envelope_with_anything_else_in_it_is_refused() {
    let namespace = Version::V11.namespace();
    for inside in ["", "<e:Body/><e:Body/>", "<e:Body/><e:Header/>", "<Body/>", "text<e:Body/>"] {
        let bytes = format!("<e:Envelope xmlns:e='{namespace}'>{inside}</e:Envelope>").into_bytes();
        assert!(soap::read(&bytes, &limits(), &[]).is_err(), "{inside}");
    }
}

#[test]
fn the_action_stands_where_each_version_puts_it() {
    assert_eq!(soap::action("text/xml", Some("\"urn:lab#echo\"")).as_deref(), Some("urn:lab#echo"));
    let content_type = Version::V12.content_type("urn:lab#echo");
    assert_eq!(content_type, "application/soap+xml; charset=utf-8; action=\"urn:lab#echo\"");
    assert_eq!(soap::action(&content_type, None).as_deref(), Some("urn:lab#echo"));
    assert_eq!(soap::action(&Version::V11.content_type("urn:lab#echo"), None), None);
}

#[test]
fn a_description_of_a_service_comes_back() {
    let operation = |name: &str| Operation { name: name.into(), action: format!("urn:lab#{name}") };
    let service = Service {
        name: "Lab".into(),
        namespace: "urn:lab".into(),
        address: "http://127.0.0.1:8080/soap?a=1&b=2".into(),
        operations: vec![operation("echo"), operation("points")],
    };
    let bytes = wsdl::write(&service).expect("written");
    assert_eq!(wsdl::read(&bytes, &limits()), Ok(service));
}

#[test]
fn every_type_that_a_description_names_is_declared_in_it() {
    let operations = vec![Operation { name: "echo".into(), action: String::new() }];
    let service =
        Service { name: "Lab".into(), namespace: "urn:lab".into(), address: "http://h/".into(), operations };
    let bytes = wsdl::write(&service).expect("written");
    let root = xml::dom::parse(&bytes, &limits()).expect("well formed");
    let (mut declared, mut named) = (Vec::new(), Vec::new());
    walk(&root, &mut |element| {
        declared.extend(element.attribute("name").map(str::to_owned));
        for reference in ["type", "ref", "element", "message", "binding"] {
            let reference = element.attribute(reference).and_then(|name| name.strip_prefix("tns:"));
            named.extend(reference.map(str::to_owned));
        }
    });
    assert!(named.len() > 10);
    assert!(named.iter().all(|name| declared.contains(name)), "{named:?} {declared:?}");
}

fn walk(element: &Element, visit: &mut impl FnMut(&Element)) {
    visit(element);
    element.elements().for_each(|inner| walk(inner, visit));
}

#[test]
fn xml_rpc_is_read_as_others_write_it() {
    let read = |value: &str| {
        let document = format!(
            "<?xml version='1.0'?>\n<methodResponse>\n <params><param>{value}</param></params></methodResponse>"
        );
        xmlrpc::read_response(document.as_bytes(), &limits()).map(|outcome| outcome.expect("no fault"))
    };
    assert_eq!(read("<value>plain <![CDATA[& <text>]]> </value>"), Ok(Value::Text("plain & <text> ".into())));
    assert_eq!(read("<value/>"), Ok(Value::Text(String::new())));
    assert_eq!(read("<value> <i4> 7 </i4> </value>"), Ok(Value::Int(7)));
    assert_eq!(read("<value><int>2147483648</int></value>"), Err(WireError::Number("2147483648".into())));
    assert_eq!(read("<value><double>-2.50</double></value>"), Ok(Value::Double(-2.5)));
    assert_eq!(read("<value><base64>AP\n8H</base64></value>"), Ok(Value::Bytes(vec![0, 255, 7])));
    let apache = "<value xmlns:ex='http://ws.apache.org/xmlrpc/namespaces/extensions'><ex:nil/></value>";
    assert_eq!(read(apache), Ok(Value::Nil));
    assert!(read("<value xmlns:ex='urn:other'><ex:i8>1</ex:i8></value>").is_err());
    for wrong in [
        "<value><boolean>yes</boolean></value>",
        "<value><double>NaN</double></value>",
        "<value><int>1</int>x</value>",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_call_in_latin_1_is_read() {
    let head = b"<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><methodCall><methodName>m</methodName><params><param><value>";
    let bytes = [&head[..], b"caf\xe9", b"</value></param></params></methodCall>"].concat();
    let call = xmlrpc::read_call(&bytes, &limits()).expect("read");
    assert_eq!(call.params, [Value::Text("café".into())]);
}

#[test]
fn a_multicall_is_taken_apart_and_cannot_nest() {
    let echo = Call { method: "echo".into(), params: vec![Value::Int(1)] };
    let outer = xmlrpc::multicall(&[echo.clone(), xmlrpc::multicall(&[])]);
    let bytes = xmlrpc::write_call(&outer).expect("written");
    let calls =
        xmlrpc::calls_of_multicall(&xmlrpc::read_call(&bytes, &limits()).expect("read")).expect("calls");
    assert_eq!(calls[0], Ok(echo));
    assert_eq!(calls[1].as_ref().expect_err("refused").code, xmlrpc::CODE_WRONG_PARAMS);
    let odd = Call { method: xmlrpc::MULTICALL.into(), params: vec![] };
    assert!(xmlrpc::calls_of_multicall(&odd).is_err());
}

#[test]
fn a_description_declares_nothing_twice_whatever_its_operations_are_called() {
    let operation = |name: &str| wsdl::Operation { name: name.into(), action: format!("urn:lab#{name}") };
    let service = wsdl::Service {
        name: "Lab".into(),
        namespace: "urn:lab".into(),
        address: "http://lab.test/".into(),
        operations: ["payload", "numbers", "points"].map(operation).into(),
    };
    let description = wsdl::write(&service).expect("written");
    let root = crate::xml::dom::parse(&description, &DocumentLimits::default()).expect("XML");
    let schema = root.element("types").and_then(|types| types.element("schema")).expect("a schema");
    let mut names: Vec<_> = schema.elements().map(|one| (&one.name, one.attribute("name"))).collect();
    let declared = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), declared);
}
