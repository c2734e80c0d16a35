//! Header blocks from the RFC, from the encoder, and malformed ones.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder<()>, block: &[u8]) -> Result<Fields, Malformed> {
    let mut fields = Fields::new();
    decoder.decode(block, &mut |field: Field<'_, ()>| {
        fields.push((field.name.to_vec(), field.value.to_vec()));
    })?;
    Ok(fields)
}

/// Decodes blocks one after the other with one decoder.
fn decode_all(blocks: &[&[u8]]) -> Vec<Fields> {
    let mut decoder = Decoder::new();
    blocks.iter().map(|block| decode(&mut decoder, block).expect("well-formed")).collect()
}

fn fields(expected: &[(&str, &str)]) -> Fields {
    expected.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn field(name: &str, value: &str) -> OwnedField {
    OwnedField { name: name.into(), value: value.into(), repeats: true }
}

/// A literal that enters the table.
fn entering(name: &str, value: &str) -> Vec<u8> {
    let mut block = Vec::new();
    write_literal(name.as_bytes(), value.as_bytes(), &mut block);
    block[0] = 0x40;
    block
}

/// Reads bytes as RFC 7541 prints them.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
    digits.chunks(2).map(|pair| octet(pair).expect("hexadecimal")).collect()
}

#[test]
fn the_requests_of_rfc_7541_appendices_c_3_and_c_4_are_read() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let huffman = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    let (method, host) = ((":method", "GET"), (":authority", "www.example.com"));
    let expected = [
        fields(&[method, (":scheme", "http"), (":path", "/"), host]),
        fields(&[method, (":scheme", "http"), (":path", "/"), host, ("cache-control", "no-cache")]),
        fields(&[
            method,
            (":scheme", "https"),
            (":path", "/index.html"),
            host,
            ("custom-key", "custom-value"),
        ]),
    ];
    for blocks in [plain, huffman] {
        let blocks = blocks.map(hex);
        assert_eq!(decode_all(&blocks.each_ref().map(Vec::as_slice)), expected);
    }
}

#[test]
fn the_responses_of_rfc_7541_appendices_c_5_and_c_6_are_read_with_their_evictions() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120
         474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
    ];
    let huffman = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
         1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
    ];
    let shared = [
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ];
    for blocks in [plain, huffman] {
        let mut decoder = Decoder::new();
        decoder.table.resize(256);
        for (block, status) in blocks.iter().zip(["302", "307"]) {
            let expected = fields(&[&[(":status", status)][..], &shared].concat());
            assert_eq!(decode(&mut decoder, &hex(block)), Ok(expected));
        }
        assert_eq!(decoder.table.size(), (4, 222));
    }
}

#[test]
fn the_integers_of_rfc_7541_appendix_c_1_are_written_and_read() {
    for (first, bits, value, expected) in [(0, 5, 10, "0a"), (0, 5, 1_337, "1f9a0a"), (0, 8, 42, "2a")] {
        let mut written = Vec::new();
        write_integer(first, bits, value, &mut written);
        assert_eq!(written, hex(expected));
        assert_eq!(integer::read_integer(&written, bits), Ok((value, &[][..])));
    }
}

#[test]
fn a_status_is_one_byte_when_the_static_table_has_it() {
    for status in [200, 204, 206, 304, 400, 404, 500, 410, 503] {
        let mut block = Vec::new();
        write_status(status, &mut block);
        assert_eq!(block.len() == 1, !matches!(status, 410 | 503), "{status}");
        assert_eq!(decode_all(&[&block]), [fields(&[(":status", &status.to_string())])]);
    }
}

#[test]
fn the_oldest_entries_leave_when_the_table_is_full() {
    let mut decoder = Decoder::new();
    // Each entry takes 1,000 bytes: four of them fit.
    let value = |letter: char| letter.to_string().repeat(1000 - 32 - 1);
    for letter in ['a', 'b', 'c', 'd', 'e'] {
        decode(&mut decoder, &entering("n", &value(letter))).expect("well-formed");
    }
    assert_eq!(decode(&mut decoder, &[0xbe]), Ok(fields(&[("n", &value('e'))])));
    assert_eq!(decode(&mut decoder, &[0xbe + 3]), Ok(fields(&[("n", &value('b'))])));
    assert!(decode(&mut decoder, &[0xbe + 4]).is_err(), "the first one has gone");
}

#[test]
fn an_entry_may_take_its_name_from_the_one_it_pushes_out() {
    let mut decoder = Decoder::new();
    decode(&mut decoder, &entering("a-name", &"x".repeat(4000))).expect("well-formed");
    let mut block = vec![0x40 | 62];
    write_integer(0, 7, 3000, &mut block);
    block.extend("y".repeat(3000).bytes());
    let expected = fields(&[("a-name", &"y".repeat(3000))]);
    assert_eq!(decode(&mut decoder, &block).as_ref(), Ok(&expected));
    assert_eq!(decode(&mut decoder, &[0xbe]).as_ref(), Ok(&expected));
    assert!(decode(&mut decoder, &[0xbf]).is_err(), "there was no room for both");
}

#[test]
fn the_table_follows_size_updates_at_the_start_of_a_block() {
    let mut decoder = Decoder::new();
    decode(&mut decoder, &entering("a", "1")).expect("well-formed");
    // To 0 and back to 4,096: old entries are evicted, new ones are kept.
    let block = [&[0x20, 0x3f, 0xe1, 0x1f][..], &entering("b", "2")].concat();
    decode(&mut decoder, &block).expect("well-formed");
    assert_eq!(decode(&mut decoder, &[0xbe]), Ok(fields(&[("b", "2")])));
    assert!(decode(&mut decoder, &[0xbf]).is_err());
}

#[test]
fn malformed_blocks_are_refused() {
    let blocks = [
        ("80", "index zero"),
        ("be", "an index beyond the tables"),
        ("7f 00 01 78", "a name index beyond the tables"),
        ("ff ff ff ff ff ff", "an endless integer"),
        ("ff 80 80 80 80 80 01", "an integer without end"),
        ("ff ff ff ff ff 0f", "an integer above all limits"),
        ("ff 80", "an integer cut off"),
        ("00 05 61", "a string that ends early"),
        ("00 01 61", "a name without value"),
        ("40", "nothing after the first octet"),
        ("3f e2 1f", "a size update above the limit"),
        ("88 20", "a size update after a field"),
        ("00 01 61 84 ff ff ff ff", "the end-of-string code"),
        ("00 01 61 85 ff ff ff fc 1f", "the end-of-string code between texts"),
        ("00 01 61 81 00", "padding that is a code"),
        ("00 01 61 81 18", "padding of zeros"),
        ("00 01 61 82 1f ff", "padding of a whole byte"),
    ];
    for (block, why) in blocks {
        assert!(decode(&mut Decoder::new(), &hex(block)).is_err(), "{why}");
    }
}

/// A reader of the first field only.
#[derive(Default)]
struct First(Fields);

impl FieldReader<()> for First {
    fn field(&mut self, field: Field<'_, ()>) {
        self.0.push((field.name.to_vec(), field.value.to_vec()));
    }

    fn wants_more(&self) -> bool {
        self.0.is_empty()
    }
}

#[test]
fn what_is_passed_over_still_enters_the_table() {
    // `:status 200`, a literal that enters, and one that does not, in broken Huffman code; then the first by its index.
    let block = hex("88 40 03 61 61 61 01 31 00 01 62 81 00");
    let (mut decoder, mut first) = (Decoder::new(), First::default());
    decoder.decode(&block, &mut first).expect("well-formed as far as it is read");
    assert_eq!(first.0[0], fields(&[(":status", "200")])[0]);
    assert_eq!(decode(&mut decoder, &[0x80 | 62]), Ok(fields(&[("aaa", "1")])));
    for beyond in ["88 ff 00", "88 0f 70 01 61", "88 00 05 61"] {
        assert!(Decoder::new().decode(&hex(beyond), &mut First::default()).is_err(), "{beyond}");
    }
}

#[test]
fn what_repeats_is_one_byte_from_the_second_time_on() {
    let mut encoder = Encoder::new();
    let field = field("apns-topic", "com.example.app");
    let (mut first, mut second) = (Vec::new(), Vec::new());
    encoder.enter(&field, &mut first);
    encoder.field(&field, &mut second);
    assert_eq!((first.len(), second.len()), (2 + 10 + 1 + 15, 1));
    let expected = fields(&[("apns-topic", "com.example.app")]);
    assert_eq!(decode_all(&[&first, &second]), [expected.clone(), expected]);
}

#[test]
fn a_block_that_is_taken_back_leaves_the_table_as_the_peer_knows_it() {
    let mut encoder = Encoder::new();
    let (mut sent, mut lost, mut after) = (Vec::new(), Vec::new(), Vec::new());
    encoder.enter(&field("one", "1"), &mut sent);
    let mark = encoder.mark();
    encoder.enter(&field("two", "2"), &mut lost);
    encoder.roll_back(mark);
    encoder.field(&field("one", "1"), &mut after);
    encoder.enter(&field("two", "2"), &mut after);
    assert_eq!(after[0], 0x80 | 62);
    assert_eq!(decode_all(&[&sent, &after])[1], fields(&[("one", "1"), ("two", "2")]));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(blocks in vec(vec(any::<u8>(), 0..200), 0..20)) {
        let mut decoder = Decoder::new();
        for block in blocks {
            if decode(&mut decoder, &block).is_err() {
                break;
            }
            let (_, bytes) = decoder.table.size();
            prop_assert!(bytes <= decoder.table_bytes() && decoder.table_bytes() <= TABLE_DEFAULT_BYTES);
        }
    }

    #[test]
    fn integers_survive_every_prefix(value in 0_usize..=1 << 28, bits in 4_u32..8) {
        let mut out = Vec::new();
        write_integer(0, bits, value, &mut out);
        prop_assert_eq!(integer::read_integer(&out, bits), Ok((value, &[][..])));
    }

    /// Blocks of fields, some of them new, some known, with table sizes that change between them; some are taken back.
    #[test]
    fn the_decoder_reads_what_the_encoder_wrote(
        blocks in vec((
            vec((0_u8..12, 0_u8..4, any::<bool>()), 1..8),
            proptest::option::of(0_usize..5_000),
            prop::bool::weighted(0.2),
        ), 1..60),
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        for (shared, limit, is_lost) in blocks {
            limit.into_iter().for_each(|bytes| encoder.limit(bytes));
            let (mark, mut block, mut wanted) = (encoder.mark(), Vec::new(), Fields::new());
            encoder.begin(&mut block);
            for (name, value, repeats) in shared {
                let (name, value) = (format!("x-{name}"), "v".repeat(usize::from(value) * 300));
                let field = OwnedField { name: name.into(), value: value.into(), repeats };
                encoder.enter(&field, &mut block);
                wanted.push((field.name, field.value));
            }
            if is_lost {
                encoder.roll_back(mark);
            } else {
                prop_assert_eq!(decode(&mut decoder, &block), Ok(wanted));
            }
        }
    }
}
