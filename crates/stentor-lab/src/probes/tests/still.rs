//! Probes without a face: bytes, interviews, sources.

use super::super::{interviews, security, shapes, size, sources, transport, types};
use super::*;
use std::path::Path;

fn of_each(probe: fn(PaperProtocol) -> Result<ProbeReply, SubjectError>) -> [ProbeReply; 3] {
    PaperProtocol::ALL.map(|protocol| probe(protocol).expect("tried"))
}

#[test]
fn structs_have_names_where_they_are_elements() {
    assert_eq!(of_each(shapes::named).each_ref().map(word), [Yes, No, Yes]);
}

#[test]
fn a_vocabulary_of_ones_own_passes_where_elements_are_free() {
    let replies = of_each(shapes::customized);
    assert_eq!(replies.each_ref().map(word), [Yes, No, Yes]);
    assert!(replies[1].evidence.contains("refused"), "{replies:?}");
}

#[test]
fn plain_xml_loses_types_and_the_others_keep_them() {
    let replies = of_each(types::survive);
    assert_eq!(replies.each_ref().map(number), [9.0, 9.0, 3.0]);
    assert!(replies[2].evidence.contains("date/time"), "{replies:?}");
}

#[test]
fn a_document_says_its_operation_unless_the_address_does() {
    assert_eq!(of_each(transport::independent).each_ref().map(word), [Yes, Yes, No]);
}

#[test]
fn plain_xml_has_the_least_overhead_and_the_fewest_names() {
    let [soap, rpc, rest] = of_each(size::overhead).each_ref().map(number);
    assert!(rest < soap && rest < rpc && rest > 0.0, "{soap} {rpc} {rest}");
    let names = of_each(size::names_known);
    assert_eq!(number(&names[2]), 1.0);
    assert!(names[0].evidence.contains("SOAPAction") && !names[1].evidence.contains("SOAPAction"));
}

#[test]
fn every_face_refuses_a_document_that_is_too_large() {
    assert_eq!(of_each(security::size).each_ref().map(word), [Yes; 3]);
}

#[test]
fn statements_are_counted_by_topic_and_by_what_they_speak_for() {
    let csv = "subject,factors,metric,value\nSOAP,id=1;topic=ease,polarity,against\n\
               SOAP,id=2;topic=knowledge,polarity,for\nREST,id=3;topic=ease,polarity,against\n";
    let figures = Figures::parse(csv).expect("figures");
    let topics = ["ease", "knowledge"].map(str::to_owned);
    let against = interviews::count(Soap, &figures, &topics[..1], "against");
    assert!(number(&against) == 1.0 && against.evidence.ends_with("ease: 1"), "{against:?}");
    let both = interviews::count(Soap, &figures, &topics, "for");
    assert!(number(&both) == 1.0 && both.evidence.starts_with("1 of 2"), "{both:?}");
}

#[test]
fn a_paragraph_counts_whole_when_it_is_there_for_one_operation() {
    let alone = "@POST\n@Path(\"sort\")\npublic Response sort() {\n}\n\n";
    let shared = "list(\"echo\", \"sort\");\nCollections.assorted();\n\nsortResponse\n";
    assert_eq!((sources::lines_of(alone), sources::lines_of(shared)), (4, 2));
}

#[test]
fn lines_are_counted_where_the_sources_are_and_nowhere_else() {
    let nowhere = tempfile::tempdir().expect("a directory");
    for folder in [None, Some(nowhere.path())] {
        assert_eq!(word(&sources::lines(Soap, folder)), NotCounted);
        assert_eq!(word(&sources::touched(Soap, folder)), NotCounted);
    }
    let file = nowhere.path().join("java/cxf-2.7.4/src/main/java/stentor/lab/cxf/Rest.java");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    std::fs::write(&file, "void sort() {\n}\n").expect("written");
    assert_eq!(number(&sources::lines(Rest, Some(nowhere.path()))), 2.0);
}

#[test]
fn our_own_sources_are_where_the_count_looks_for_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/subjects");
    for protocol in [Soap, Rest] {
        assert!(sources::lines(protocol, Some(&folder)).unit == "lines", "{protocol:?}");
    }
}

#[test]
fn a_handler_for_every_operation_has_no_lines_of_one_and_is_not_counted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/subjects");
    for count in [sources::lines, sources::touched] {
        let replies = count(XmlRpc, Some(&folder));
        assert!(word(&replies) == NotCounted && replies.evidence.contains("one handler"), "{replies:?}");
    }
}
