use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn gather() -> Gather {
    Gather::new(true, 1 << 20)
}

/// Decodes blocks one after the other; gives each one's headers in order of their names.
fn decode(blocks: &[&[u8]]) -> Vec<Vec<(String, String)>> {
    let mut decoder = Decoder::new();
    let read = |block: &&[u8]| {
        let mut into = gather();
        decoder.decode(block, &mut into).expect("well-formed");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let headers = into.headers.iter();
        headers.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
    };
    blocks.iter().map(read).collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

/// Reads bytes as RFC 7541 prints them.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
    digits.chunks(2).map(|pair| octet(pair).expect("hexadecimal")).collect()
}

#[test]
fn the_responses_of_rfc_7541_appendix_c_6_are_read_with_their_huffman_codes_and_evictions() {
    let first = hex("4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
        2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3");
    let second = hex("4883 640e ffc1 c0bf");
    let mut decoder = Decoder::new();
    decoder.table.resize(256);
    let mut seen = gather();
    decoder.decode(&first, &mut seen).expect("well-formed");
    assert_eq!(seen.status, Some(302));
    assert_eq!(seen.headers["cache-control"], "private");
    assert_eq!(seen.headers["date"], "Mon, 21 Oct 2013 20:13:21 GMT");
    assert_eq!(seen.headers["location"], "https://www.example.com");
    let mut seen = gather();
    decoder.decode(&second, &mut seen).expect("well-formed");
    assert_eq!((seen.status, seen.headers.len()), (Some(307), 3));
    let table: usize = decoder.table.iter().map(table::Entry::size).sum();
    assert_eq!((decoder.table.len(), table), (4, 222));
}

#[test]
fn what_repeats_is_one_byte_from_the_second_time_on() {
    let mut encoder = Encoder::new();
    let field = Field { name: b"apns-topic".to_vec(), value: b"com.example.app".to_vec(), repeats: true };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    encoder.enter(&field, &mut first);
    encoder.field(&field, &mut second);
    assert_eq!((first.len(), second.len()), (2 + 10 + 1 + 15, 1));
    let both = decode(&[&first, &second]);
    assert_eq!(both, [[pair("apns-topic", "com.example.app")], [pair("apns-topic", "com.example.app")]]);
}

#[test]
fn a_block_that_is_taken_back_leaves_the_table_as_the_peer_knows_it() {
    let mut encoder = Encoder::new();
    let field = |name: &str, value: &str| Field { name: name.into(), value: value.into(), repeats: true };
    let (mut sent, mut lost, mut after) = (Vec::new(), Vec::new(), Vec::new());
    encoder.enter(&field("one", "1"), &mut sent);
    let mark = encoder.mark();
    encoder.enter(&field("two", "2"), &mut lost);
    encoder.roll_back(mark);
    encoder.field(&field("one", "1"), &mut after);
    encoder.enter(&field("two", "2"), &mut after);
    assert_eq!(after[0], 0x80 | 62);
    assert_eq!(decode(&[&sent, &after])[1], [pair("one", "1"), pair("two", "2")]);
}

#[test]
fn what_is_passed_over_still_enters_the_table() {
    // `:status 200`, a literal that enters, and one that does not; then the first by its index.
    let block = hex("88 40 03 61 61 61 01 31 00 01 62 01 32");
    let mut decoder = Decoder::new();
    let mut seen = Gather::new(false, 1_000);
    decoder.decode(&block, &mut seen).expect("well-formed");
    assert_eq!((seen.status, seen.headers.len()), (Some(200), 0));
    let mut seen = gather();
    decoder.decode(&[0x80 | 62], &mut seen).expect("well-formed");
    assert_eq!(seen.headers["aaa"], "1");
}

#[test]
fn malformed_blocks_are_refused() {
    let blocks = [
        ("80", "index zero"),
        ("be", "an index beyond the table"),
        ("ff ff ff ff ff ff", "an endless integer"),
        ("40 05 61", "a string that ends early"),
        ("3f e2 1f", "a size update above the limit"),
        ("88 20", "a size update after a field"),
        ("00 01 61 84 ff ff ff ff", "the end-of-string code"),
        ("00 01 61 81 00", "padding that is not all ones"),
        ("40", "nothing after the first octet"),
    ];
    for (block, why) in blocks {
        assert!(Decoder::new().decode(&hex(block), &mut gather()).is_err(), "{why}");
    }
}

#[test]
fn fields_that_are_no_http_are_told() {
    let cases = ["00 01 41 01 31", "00 01 61 01 0a", "08 03 32 30 78", "08 02 32 30", "00 00 01 31"];
    for block in cases {
        let mut seen = gather();
        Decoder::new().decode(&hex(block), &mut seen).expect("well-formed");
        assert!(seen.invalid, "{block}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(blocks in vec(vec(any::<u8>(), 0..200), 0..20)) {
        let mut decoder = Decoder::new();
        for block in blocks {
            if decoder.decode(&block, &mut gather()).is_err() {
                break;
            }
            let size: usize = decoder.table.iter().map(table::Entry::size).sum();
            prop_assert!(size <= decoder.table.max() && decoder.table.max() <= TABLE_DEFAULT_BYTES);
        }
    }

    #[test]
    fn integers_survive_every_prefix(value in 0_usize..1 << 28, bits in 4_u32..8) {
        let mut out = Vec::new();
        integer::write(0, bits, value, &mut out);
        let mut rest = &out[..];
        prop_assert_eq!(integer::read(&mut rest, bits), Ok(value));
        prop_assert!(rest.is_empty());
    }

    /// Blocks of fields, some of them new, some known, with table sizes that change between them.
    #[test]
    fn the_decoder_reads_what_the_encoder_wrote(
        blocks in vec((vec((0_u8..12, 0_u8..4, any::<bool>()), 1..8), proptest::option::of(0_usize..5_000)), 1..30),
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        for (fields, limit) in blocks {
            limit.into_iter().for_each(|bytes| encoder.limit(bytes));
            let mut block = Vec::new();
            encoder.begin(&mut block);
            let mut wanted = http::HeaderMap::new();
            for (name, value, repeats) in fields {
                let (name, value) = (format!("x-{name}"), "v".repeat(usize::from(value) * 300));
                let field = Field { name: name.clone().into(), value: value.clone().into(), repeats };
                encoder.enter(&field, &mut block);
                wanted.append(http::HeaderName::try_from(name).expect("a name"), value.parse().expect("a value"));
            }
            let mut seen = gather();
            prop_assert_eq!(decoder.decode(&block, &mut seen), Ok(()));
            prop_assert_eq!(seen.headers, wanted);
        }
    }
}
