use super::*;
use proptest::prelude::*;

#[test]
fn what_comes_twice_is_repeated_and_a_gap_is_closed_later() {
    let mut stream = ByteStream::default();
    stream.begin(u32::MAX - 1);
    assert_eq!(stream.take(u32::MAX - 1, b"abcd").fresh, 4);
    assert_eq!(stream.take(u32::MAX - 1, b"abcd"), TakenPayload { repeated: 4, ..TakenPayload::default() });
    let behind = stream.take(6, b"ij");
    assert_eq!((behind.fresh, behind.kinds), (2, ContentBytes::default()));
    let closing = stream.take(0, b"cdefghij");
    assert_eq!((closing.fresh, closing.repeated, closing.kinds.payload), (4, 4, 6));
    assert_eq!(stream.unread_bytes(), 0);
}

proptest! {
    #[test]
    fn each_byte_is_fresh_once_in_whatever_order_pieces_come(
        first: u32,
        pieces in prop::collection::vec((0..200_u32, 0..60_usize), 1..60),
    ) {
        let text: Vec<u8> = (0..300).map(|at| (at % 251) as u8).collect();
        let mut stream = ByteStream::default();
        stream.begin(first);
        let mut there = vec![false; text.len()];
        let (mut fresh, mut read) = (0, 0);
        for (at, length) in pieces {
            let range = at as usize..at as usize + length;
            let taken = stream.take(first.wrapping_add(at), &text[range.clone()]);
            prop_assert_eq!(taken.fresh + taken.repeated, length as u64);
            fresh += taken.fresh;
            read += taken.kinds.framing + taken.kinds.tls + taken.kinds.payload;
            there[range].fill(true);
        }
        let known = there.iter().filter(|is| **is).count() as u64;
        prop_assert_eq!(fresh, known);
        prop_assert_eq!(read + stream.unread_bytes(), known);
    }
}
