//! Round trips: values are read back as they were written.

use super::*;
use crate::xmlrpc::{Call, RpcFault};

proptest! {
    #[test]
    fn content_comes_back_from_xml_by_all_three_readers(content in content()) {
        let bytes = content.to_xml().expect("written");
        prop_assert_eq!(&content::sax::read(&bytes, &limits()).expect("sax"), &content);
        prop_assert_eq!(&content::dom::read(&bytes, &limits()).expect("dom"), &content);
        prop_assert_eq!(&content::pull::read(&bytes, &limits()).expect("pull"), &content);
    }

    #[test]
    fn content_comes_back_from_json_and_protocol_buffers(content in content()) {
        let bytes = json::write_content(&content).expect("written");
        prop_assert_eq!(&json::read_content(&bytes, &limits()).expect("json"), &content);
        let bytes = protobuf::write(&content);
        prop_assert_eq!(&protobuf::read(&bytes, &limits()).expect("protobuf"), &content);
    }

    #[test]
    fn content_comes_back_from_envelopes_of_both_versions(content in content()) {
        for version in [soap::Version::V11, soap::Version::V12] {
            let written = soap::Envelope::response(version, "urn:lab", "echo", &content);
            let bytes = soap::write(&written).expect("written");
            let read = soap::read(&bytes, &limits(), &[]).expect("read");
            prop_assert_eq!(read.version, version);
            let content_read = read.response_content("urn:lab", "echo").expect("content").expect("no fault");
            prop_assert_eq!(&content_read, &content);
        }
    }

    #[test]
    fn values_come_back_from_json(value in value()) {
        let bytes = json::write(&value).expect("written");
        prop_assert_eq!(json::read(&bytes, &limits()).expect("read"), value);
    }

    #[test]
    fn calls_and_answers_come_back_from_xml_rpc(params in prop::collection::vec(value(), 0..3)) {
        let call = Call { method: "lab.echo".into(), params };
        let bytes = xmlrpc::write_call(&call).expect("written");
        prop_assert_eq!(&xmlrpc::read_call(&bytes, &limits()).expect("read"), &call);
        for value in call.params {
            let bytes = xmlrpc::write_response(&Ok(value.clone())).expect("written");
            prop_assert_eq!(xmlrpc::read_response(&bytes, &limits()).expect("read"), Ok(value));
        }
    }

    #[test]
    fn a_multicall_comes_back_with_values_and_faults_in_order(
        outcomes in prop::collection::vec(prop_oneof![
            value().prop_map(Ok),
            (any::<i32>(), text()).prop_map(|(code, text)| Err(RpcFault { code, text })),
        ], 0..5)
    ) {
        let answer = xmlrpc::multicall_result(outcomes.clone());
        let bytes = xmlrpc::write_response(&Ok(answer)).expect("written");
        let answer = xmlrpc::read_response(&bytes, &limits()).expect("read").expect("no fault");
        prop_assert_eq!(xmlrpc::results_of_multicall(&answer).expect("results"), outcomes);
    }

    #[test]
    fn frames_come_back_however_they_are_cut(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
        piece in 1_usize..17,
    ) {
        let bytes: Vec<u8> = payloads.iter().flat_map(|one| frame::write(one).expect("written")).collect();
        let mut frames = frame::Frames::new(limits());
        let mut found = Vec::new();
        for piece in bytes.chunks(piece) {
            frames.feed(piece);
            while let Some(payload) = frames.frame().expect("small") {
                found.push(payload);
            }
        }
        prop_assert_eq!((found, frames.waiting_bytes()), (payloads, 0));
    }

    #[test]
    fn trees_come_back_with_their_namespaces_and_attributes(texts in prop::collection::vec(text(), 1..5)) {
        use crate::xml::{Attribute, dom::{Element, parse}};
        let mut root = Element::of("urn:a", "root").with_attribute("plain", &texts[0]);
        let namespace = Some("urn:b".to_owned());
        root.attributes.push(Attribute { namespace, name: "far".into(), value: texts[0].clone() });
        for (place, text) in texts.iter().enumerate() {
            let child = if place % 2 == 0 { Element::new("plain") } else { Element::of("urn:b", "other") };
            root = root.with(child.with_text(text)).with_text(text);
        }
        let bytes = root.to_bytes().expect("written");
        prop_assert_eq!(parse(&bytes, &limits()).expect("read"), root);
    }
}

#[test]
fn namespaces_that_want_escaping_come_back() {
    use crate::xml::{
        Attribute,
        dom::{Element, parse},
    };
    let namespace = "urn:a?b=1&c=<2>\t\"";
    let mut root = Element::of(namespace, "root").with(Element::of(namespace, "inner"));
    root.attributes.push(Attribute {
        namespace: Some(namespace.into()),
        name: "b".into(),
        value: "&amp;".into(),
    });
    let bytes = root.to_bytes().expect("written");
    assert_eq!(parse(&bytes, &limits()), Ok(root));

    let long = Element::of(&"\"".repeat(500), "root");
    let bytes = long.to_bytes().expect("written");
    assert_eq!(parse(&bytes, &limits()), Ok(long), "its length is that of what is meant");
}

#[test]
fn names_of_xml_itself_come_back_with_the_prefix_that_only_they_have() {
    use crate::xml::dom::parse;
    let text =
        b"<xml:a xml:lang='en' xmlns='urn:a'><b xml:space='preserve' c='1'><xml:d/><e xmlns=''/></b></xml:a>";
    let root = parse(text, &limits()).expect("read");
    let bytes = root.to_bytes().expect("written");
    assert_eq!(parse(&bytes, &limits()), Ok(root));
}

#[test]
fn bytes_and_dates_come_back_from_xml_rpc() {
    let value = Value::List(vec![Value::Bytes(vec![0, 255, 7]), Value::DateTime("19980717T14:08:55".into())]);
    let bytes = xmlrpc::write_response(&Ok(value.clone())).expect("written");
    assert_eq!(xmlrpc::read_response(&bytes, &limits()), Ok(Ok(value)));
}

#[test]
fn what_a_format_cannot_carry_is_refused_and_not_changed() {
    let control = Content::Payload("a\u{1}b".into());
    assert_eq!(control.to_xml(), Err(WireError::Unrepresentable("a control character")));
    assert!(protobuf::read(&protobuf::write(&control), &limits()) == Ok(control));
    let infinite = Value::List(vec![Value::Double(f64::INFINITY)]);
    assert!(json::write(&infinite).is_err());
    assert!(xmlrpc::write_response(&Ok(infinite)).is_err());
    let item = Content::Objects(vec![Item { id: 1, name: String::new(), price: f64::NAN }]);
    assert!(item.to_xml().is_err() && json::write_content(&item).is_err());
}
