//! Tests of the stream reader: input in pieces, and input beyond the limits.

use super::{MAX_ELEMENT_BYTES, StreamEvent, StreamFault, StreamReader, escaped};

const HEAD: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' \
    xmlns:stream='http://etherx.jabber.org/streams' to='fcm xmpp client connection server' version='1.0'>";

fn events(text: &str, piece: usize) -> Result<Vec<StreamEvent>, StreamFault> {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for piece in text.as_bytes().chunks(piece) {
        let mut rest = piece;
        while let Some(event) = reader.read(&mut rest)? {
            events.push(event);
        }
    }
    Ok(events)
}

#[test]
fn a_stream_is_the_same_in_pieces_of_any_size() {
    let text = format!(
        "{HEAD} <message id='1'><data:gcm xmlns:data='google:mobile:data'>{{&quot;a&quot;:\"<![CDATA[<b>]]>\"}}</data:gcm></message>\n\n<presence/></stream:stream>"
    );
    let whole = events(&text, text.len()).unwrap();
    let StreamEvent::Element(message) = &whole[1] else { panic!("{whole:?}") };
    assert_eq!(message.child("google:mobile:data", "gcm").unwrap().text, "{\"a\":\"<b>\"}");
    assert_eq!((message.attribute("id"), message.attribute("to")), (Some("1"), None));
    assert!(matches!(&whole[2], StreamEvent::Element(presence) if presence.is("jabber:client", "presence")));
    assert_eq!(whole[3], StreamEvent::Closed);
    for piece in [1, 2, 3, 7] {
        assert_eq!(events(&text, piece).unwrap(), whole, "pieces of {piece}");
    }
}

#[test]
fn a_stream_may_begin_without_a_declaration_and_after_a_blank() {
    let text = "\n<stream:stream xmlns:stream='http://etherx.jabber.org/streams'>";
    let events = events(text, 5).unwrap();
    assert!(matches!(&events[..], [StreamEvent::Opened(root)] if root.name == "stream"));
}

#[test]
fn what_is_too_large_or_too_deep_is_refused() {
    let long = format!("{HEAD}<a>{}</a>", "x".repeat(MAX_ELEMENT_BYTES));
    assert_eq!(events(&long, 4096), Err(StreamFault::TooLarge));
    let deep = format!("{HEAD}{}", "<a>".repeat(17));
    assert_eq!(events(&deep, 4096), Err(StreamFault::TooLarge));
    let blanks = format!("{HEAD}{}<a/>", " ".repeat(MAX_ELEMENT_BYTES * 2));
    assert_eq!(events(&blanks, 4096).unwrap().len(), 2);
    let root = format!("<stream {}>", "a".repeat(MAX_ELEMENT_BYTES));
    assert!(events(&root, 4096).is_err());
}

#[test]
fn a_document_type_an_entity_and_a_wrong_end_are_refused() {
    for wrong in [
        "<!DOCTYPE a><a>",
        "<a>&b;</a>",
        "<a></b>",
        "<a b='1' b='2'/>",
        "<a><!-- c --></a>",
        "<a>&#0;</a>",
        "<b:a/>",
    ] {
        assert_eq!(events(&format!("{HEAD}{wrong}"), 64), Err(StreamFault::NotWellFormed), "{wrong}");
    }
}

#[test]
fn what_is_written_is_read_as_it_was() {
    let text = "a<b>&\"c'\r\n\tü\u{10ffff}";
    let document = format!("{HEAD}<a b=\"{0}\">{0}</a>", escaped(text));
    let events = events(&document, 3).unwrap();
    let StreamEvent::Element(element) = &events[1] else { panic!("{events:?}") };
    assert_eq!((element.text.as_str(), element.attribute("b")), (text, Some(text)));
    assert_eq!(escaped("\0\u{fffe}"), "\u{fffd}\u{fffd}");
}
