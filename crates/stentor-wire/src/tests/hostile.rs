//! Hostile and meaningless documents.

use super::*;

type Reader = fn(&[u8], &DocumentLimits) -> Result<(), WireError>;

/// Every reader of XML.
const XML_READERS: [(&str, Reader); 7] = [
    ("sax", |bytes, limits| content::sax::read(bytes, limits).map(drop)),
    ("dom", |bytes, limits| content::dom::read(bytes, limits).map(drop)),
    ("pull", |bytes, limits| content::pull::read(bytes, limits).map(drop)),
    ("soap", |bytes, limits| soap::read(bytes, limits, &[]).map(drop)),
    ("wsdl", |bytes, limits| wsdl::read(bytes, limits).map(drop)),
    ("call", |bytes, limits| xmlrpc::read_call(bytes, limits).map(drop)),
    ("response", |bytes, limits| xmlrpc::read_response(bytes, limits).map(drop)),
];

#[track_caller]
fn refused_by_all(bytes: &[u8], limits: &DocumentLimits, error: &WireError) {
    for (name, read) in XML_READERS {
        assert_eq!(read(bytes, limits).as_ref(), Err(error), "{name}");
    }
}

fn element(bytes: &[u8], limits: &DocumentLimits) -> Result<xml::dom::Element, WireError> {
    xml::dom::parse(bytes, limits)
}

#[test]
fn a_billion_laughs_are_not_laughed() {
    let entities: String = (1..10).map(|n| format!("<!ENTITY l{n} \"&l{0};&l{0};\">", n - 1)).collect();
    let bomb =
        format!("<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY l0 \"ha\">{entities}]><payload>&l9;</payload>");
    refused_by_all(bomb.as_bytes(), &limits(), &WireError::Forbidden("document types"));
    let file = b"<!DOCTYPE x [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><payload>&f;</payload>";
    refused_by_all(file, &limits(), &WireError::Forbidden("document types"));
    let undeclared = element(b"<payload>&laugh;</payload>", &limits());
    assert_eq!(undeclared, Err(WireError::Forbidden("entities")));
}

#[test]
fn documents_are_refused_by_size_before_they_are_looked_at() {
    let limits = DocumentLimits { document_max_bytes: 20, ..limits() };
    let long = vec![b'<'; 21];
    refused_by_all(&long, &limits, &WireError::TooLarge { max_bytes: 20 });
    for result in [json::read(&long, &limits).map(drop), json::read_content(&long, &limits).map(drop)] {
        assert_eq!(result, Err(WireError::TooLarge { max_bytes: 20 }));
    }
    assert_eq!(protobuf::read(&long, &limits), Err(WireError::TooLarge { max_bytes: 20 }));
}

#[test]
fn depth_is_limited_even_where_the_limit_is_not() {
    let endless = DocumentLimits { depth_max: usize::MAX, ..limits() };
    let nested = "<a>".repeat(100_000);
    assert_eq!(element(nested.as_bytes(), &endless), Err(WireError::TooDeep { max: 100 }));
    assert_eq!(element("<a>".repeat(65).as_bytes(), &limits()), Err(WireError::TooDeep { max: 64 }));
    let lists = "[".repeat(100_000);
    assert_eq!(json::read(lists.as_bytes(), &limits()), Err(WireError::TooDeep { max: 64 }));
    assert!(json::read_content(lists.as_bytes(), &endless).is_err());
}

#[test]
fn nodes_and_attributes_are_counted() {
    let few = DocumentLimits { nodes_max: 3, attributes_max: 2, ..limits() };
    assert!(element(b"<a><b/><b/></a>", &few).is_ok());
    let many = WireError::TooMany { what: "nodes", max: 3 };
    assert_eq!(element(b"<a><b/><b/><b/></a>", &few), Err(many.clone()));
    assert_eq!(json::read(b"[1,2,3]", &few), Err(many.clone()));
    assert_eq!(json::read_content(br#"{"numbers":[1,2,3,4]}"#, &few), Err(many.clone()));
    assert_eq!(protobuf::read(&protobuf::write(&Content::Numbers(vec![1; 4])), &few), Err(many));
    let attributes = WireError::TooMany { what: "attributes", max: 2 };
    assert_eq!(element(b"<a b='' c='' d=''/>", &few), Err(attributes.clone()));
    assert_eq!(element(b"<a xmlns:b='u' xmlns:c='u' xmlns:d='u'/>", &few), Err(attributes));
}

#[test]
fn a_namespace_is_not_long_enough_to_cost_much_in_each_element() {
    let long = format!("<x:payload xmlns:x='{}'/>", "n".repeat(501));
    let error = WireError::TooMany { what: "bytes in a namespace", max: 500 };
    refused_by_all(long.as_bytes(), &limits(), &error);
}

#[test]
fn a_frame_that_promises_too_much_is_refused_at_its_header() {
    let mut frames = frame::Frames::new(limits());
    frames.feed(&[255, 255, 255, 255]);
    assert!(frames.frame().is_err());
    let mut frames = frame::Frames::new(DocumentLimits { document_max_bytes: 2, ..limits() });
    frames.feed(&[0, 0, 0, 2, 1]);
    assert_eq!((frames.frame(), frames.waiting_bytes()), (Ok(None), 5));
}

#[test]
fn what_is_not_well_formed_is_refused() {
    let wrong: [&[u8]; 28] = [
        b"",
        b"<x:a:b xmlns:x='u'/>",
        b"<a x:b:c='' xmlns:x='u'/>",
        b"<xmlns:a/>",
        b"<a b='<'/>",
        b"<a xmlns='<'/>",
        b"<a b='&#1;'/>",
        b"<a xmlns='&#1;'/>",
        b"<a xmlns:p='u&laugh;' p:b=''/>",
        b" ",
        b"text",
        b"<a>",
        b"<a></b>",
        b"</a>",
        b"<a/><b/>",
        b"<a/>text",
        b"text<a/>",
        b"<a b='1' b='2'/>",
        b"<a xmlns:x='u' xmlns:y='u' x:b='1' y:b='2'/>",
        b"<a b/>",
        b"<p:a/>",
        b"<a>&#0;</a>",
        b"<a>&#xFFFF;</a>",
        b"<a>\x01</a>",
        b"<a>\xff</a>",
        b"<a><![CDATA[</a>",
        b"<a>&</a>",
        b"<a/><![CDATA[x]]>",
    ];
    for document in wrong {
        let read = element(document, &limits());
        assert!(read.is_err(), "{} was read as {read:?}", document.escape_ascii());
    }
    let foreign = b"<?xml version='1.0' encoding='utf-16'?><a/>";
    assert!(matches!(element(foreign, &limits()), Err(WireError::Forbidden(_))));
}

#[test]
fn content_of_another_shape_is_refused_by_all_three_readers_alike() {
    let wrong = [
        "<other/>",
        "<numbers><n>1.5</n></numbers>",
        "<numbers><n>9223372036854775808</n></numbers>",
        "<numbers>1</numbers>",
        "<numbers><t>1</t></numbers>",
        "<numbers><n><n>1</n></n></numbers>",
        "<payload>a<b/>c</payload>",
        "<texts><t/>x<t/></texts>",
        "<objects><object><id>1</id></object></objects>",
        "<objects><object><id>1</id><name/><price>inf</price></object></objects>",
        "<objects><object><id>1</id><name/><price>1</price><more/></object></objects>",
        "<objects><object>x<id>1</id><name/><price>1</price></object></objects>",
        "<points><point><id/></point></points>",
        "<points><point/></points>",
    ];
    for document in wrong {
        for (name, read) in &XML_READERS[..3] {
            let read = read(document.as_bytes(), &limits());
            assert!(read.is_err(), "{name} read {document}");
        }
    }
}

#[test]
fn json_of_another_shape_is_refused() {
    for wrong in ["", "{", "1 2", r#"{"a":1,"a":2}"#, "9223372036854775808", "1e999", "NaN", "\"\\ud800\""] {
        assert!(json::read(wrong.as_bytes(), &limits()).is_err(), "{wrong}");
    }
    let point = r#"{"points":[{"id":"1"}]}"#;
    for wrong in
        ["{}", "[]", r#"{"numbers":[1.5]}"#, r#"{"other":[]}"#, r#"{"payload":"a","numbers":[]}"#, point]
    {
        assert!(json::read_content(wrong.as_bytes(), &limits()).is_err(), "{wrong}");
    }
}

#[test]
fn protocol_buffers_of_another_shape_are_refused() {
    let wrong: [&[u8]; 6] = [
        b"",
        // A length beyond the end, a text that is not UTF-8, a wrong wire type, a group without an end, a long varint.
        &[0x0a, 200, 1, b'a'],
        &[0x0a, 1, 0xff],
        &[0x08, 1],
        &[0x0b],
        &[0x12, 13, 0x0a, 11, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
    ];
    for bytes in wrong {
        assert!(protobuf::read(bytes, &limits()).is_err(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        XML_READERS.iter().for_each(|(_, read)| drop(read(&bytes, &limits())));
        let _ = (json::read(&bytes, &limits()), json::read_content(&bytes, &limits()), protobuf::read(&bytes, &limits()));
    }

    #[test]
    fn a_changed_byte_never_makes_the_three_readers_disagree(
        content in content(), place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = content.to_xml().expect("written");
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let dom = content::dom::read(&bytes, &limits()).ok();
        prop_assert_eq!(content::sax::read(&bytes, &limits()).ok(), dom.clone());
        prop_assert_eq!(content::pull::read(&bytes, &limits()).ok(), dom);
    }
}
