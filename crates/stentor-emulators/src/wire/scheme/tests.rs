//! Only the value of a literal `:scheme` is mended, wherever it stands and whatever stands around it.

use super::*;

/// As Node's client writes it: `:method POST`, `:scheme https:` (indexed literal), `:path` (not indexed).
const NODE: &[u8] = b"\x83\x46\x85\x9d\x29\xad\x17\x3f\x04\x02/v";
const MENDED: &[u8] = b"\x83\x46\x05https\x04\x02/v";

fn mended(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    mend_scheme(flags, &mut payload);
    payload
}

#[test]
fn the_colon_of_a_scheme_is_taken_out() {
    assert_eq!(mended(0, NODE), MENDED);
}

#[test]
fn every_kind_of_literal_is_mended() {
    for first in [0x06, 0x07, 0x16, 0x17, 0x46, 0x47] {
        assert_eq!(mended(0, &[&[first], WITH_COLON.as_slice()].concat())[1..], *WITHOUT_COLON);
    }
}

#[test]
fn priority_and_padding_are_stepped_over() {
    let priority = &[0x80, 0, 0, 0, 15];
    assert_eq!(mended(0x20, &[priority, NODE].concat()), [priority, MENDED].concat());
    let padded = |block: &[u8]| [&[6], block, WITH_COLON.as_slice()].concat();
    assert_eq!(mended(0x08, &padded(NODE)), padded(MENDED));
    let both = |block: &[u8]| [&[2], priority.as_slice(), block, &[0, 0]].concat();
    assert_eq!(mended(0x28, &both(NODE)), both(MENDED));
}

#[test]
fn the_same_bytes_elsewhere_are_left_alone() {
    let pattern = [&[0x46], WITH_COLON.as_slice()].concat();
    let long = [&[0x7f, 0x80, 0x01], [b'x'; 255].as_slice()].concat();
    for block in [
        // The value of `:path`, of a new name, of a name in the dynamic table; a new name itself.
        [b"\x04\x07", pattern.as_slice()].concat(),
        [b"\x40\x01a\x07", pattern.as_slice()].concat(),
        [b"\x7e\x07", pattern.as_slice()].concat(),
        [b"\x40\x07", pattern.as_slice(), b"\x01a"].concat(),
        // The same value for another name; behind a text with a long length; in the padding.
        [b"\x44", WITH_COLON.as_slice()].concat(),
        [b"\x04", long.as_slice(), WITH_COLON].concat(),
    ] {
        assert_eq!(mended(0, &block), block);
    }
    let padding = [&[7, 0x83], pattern.as_slice()].concat();
    assert_eq!(mended(0x08, &padding), padding);
}

#[test]
fn other_schemes_are_left_alone() {
    for block in [
        b"\x87".as_slice(),
        b"\x46\x05https",
        b"\x46\x06https:",
        b"\x46\x84\x9d\x29\xad\x1f",
        b"\x46\x85\x9d\x29\xad\x17\x3e",
    ] {
        assert_eq!(mended(0, block), block);
    }
}

#[test]
fn a_block_that_is_cut_off_is_mended_as_far_as_it_is_whole() {
    for end in 0..NODE.len() {
        let expected = if end < 8 { &NODE[..end] } else { &MENDED[..end] };
        assert_eq!(mended(0, &NODE[..end]), expected, "of {end} bytes");
    }
}

#[test]
fn hostile_lengths_end_the_walk() {
    for block in [
        b"\x7f".as_slice(),
        b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x04\x7f\xff\xff\xff\x7f",
        b"\x00\xff\xff\xff\xff\x7f",
        b"\x3f\xff\xff",
    ] {
        let block = [block, NODE].concat();
        assert_eq!(mended(0, &block), block);
    }
    for payload in [b"".as_slice(), b"\xff", b"\x02\x83"] {
        assert_eq!(mended(0x28, payload), payload);
    }
}
