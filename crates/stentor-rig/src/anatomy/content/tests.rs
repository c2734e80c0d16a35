use super::*;
use proptest::prelude::*;

fn kinds(text: &[u8]) -> (u64, u64, u64) {
    let kinds = ContentReader::default().read(text);
    (kinds.framing, kinds.tls, kinds.payload)
}

#[test]
fn a_body_of_known_length_is_payload_and_the_next_message_is_framing_again() {
    let one = b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(kinds(one), (one.len() as u64 - 3, 0, 3));
    let two = [&one[..], b"GET / HTTP/1.1\r\n\r\n"].concat();
    assert_eq!(kinds(&two), (two.len() as u64 - 3, 0, 3));
}

#[test]
fn sizes_of_chunks_are_framing() {
    let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nT: 1\r\n\r\nHTTP/1.1 204 No\r\n\r\n";
    assert_eq!(kinds(text), (text.len() as u64 - 6, 0, 6));
}

#[test]
fn a_body_without_a_length_goes_on_to_the_end_and_an_empty_answer_has_none() {
    assert_eq!(kinds(b"HTTP/1.0 200 OK\r\n\r\nall the rest"), (19, 0, 12));
    assert_eq!(kinds(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n").2, 0);
}

#[test]
fn tls_records_other_than_data_are_not_payload() {
    let text = [&[22, 3, 1, 0, 2, 1, 1][..], &[23, 3, 3, 0, 3, 9, 9, 9]].concat();
    assert_eq!(kinds(&text), (10, 2, 3));
}

#[test]
fn what_is_not_known_is_payload() {
    assert_eq!(kinds(b"\x00\x00\x00\x05hello"), (0, 0, 9));
    assert_eq!(kinds(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").2, 24);
    assert_eq!(kinds(b"GET / HTTP/1.1\r\n\r\n\x81\x05hello and more").0, 18);
}

proptest! {
    #[test]
    fn every_byte_is_counted_once_however_it_is_cut(
        text in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            "(GET / HTTP/1.1\r\n|Content-Length: [0-9]{1,3}\r\n|Transfer-Encoding: chunked\r\n|\r\n|[0-9a-f]{1,2}\r\n|.{0,9}){0,30}"
                .prop_map(String::into_bytes),
            prop::collection::vec(prop_oneof![Just(22_u8), Just(3), Just(23), 0..4_u8], 0..200),
        ],
        cut in 1..40_usize,
    ) {
        let mut content = ContentReader::default();
        let mut sum = 0;
        for piece in text.chunks(cut) {
            let kinds = content.read(piece);
            sum += kinds.framing + kinds.tls + kinds.payload;
        }
        prop_assert_eq!(sum, text.len() as u64);
    }
}
