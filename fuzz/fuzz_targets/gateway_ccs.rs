//! Input of an app server over CCS: it is read the same in any pieces, and the responses are well-formed.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_gateway::ccs::fuzzing::{is_stanza, read};

const HEAD: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";
const MESSAGE: &str = "<message id='m'><gcm xmlns='google:mobile:data'>";

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, piece_bytes], bytes)) = input.split_first_chunk::<2>() else { return };
    // The input is sent on a new connection, within a stream, or as the text of a message.
    let before = match kind % 3 {
        0 => String::new(),
        1 => HEAD.to_owned(),
        _ => format!("{HEAD}{MESSAGE}"),
    };
    let mut said = before.into_bytes();
    said.extend_from_slice(bytes);
    if kind % 3 == 2 {
        said.extend_from_slice(b"</gcm></message>");
    }
    let (whole, cut) = (read(&said, said.len()), read(&said, usize::from(piece_bytes) + 1));
    assert_eq!(whole.is_well_formed, cut.is_well_formed);
    if whole.is_well_formed {
        assert_eq!(whole, cut, "pieces of {piece_bytes}");
    }
    for answer in cut.answers() {
        assert!(is_stanza(&answer), "{answer}");
    }
});
