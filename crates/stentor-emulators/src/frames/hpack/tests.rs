//! Header blocks as the RFC shows them, as another implementation writes them, and as nobody should.

use super::*;
use crate::frames::rig::{Fields, LIMITS, Recorder, Seen};
use crate::frames::{Connection, serve};
use http::{HeaderValue, Request};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, Undecodable> {
    let mut fields = Fields::new();
    decoder.decode(block, |field| fields.push((field.name.to_vec(), field.value.to_vec())))?;
    Ok(fields)
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn fields(expected: &[(&str, &str)]) -> Fields {
    expected.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

#[test]
fn the_examples_of_the_rfc_are_decoded_with_and_without_huffman() {
    // RFC 7541, appendix C.3 and C.4.
    let plain = [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ];
    let huffman = [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
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
        let mut decoder = Decoder::new();
        for (block, expected) in blocks.iter().zip(&expected) {
            assert_eq!(decode(&mut decoder, &bytes(block)).as_ref(), Ok(expected));
        }
    }
}

/// A literal that is kept in the table.
fn kept(name: &str, value: &str) -> Vec<u8> {
    let mut block = Vec::new();
    write_field(&mut block, name.as_bytes(), value.as_bytes());
    block[0] = 0x40;
    block
}

#[test]
fn the_oldest_entries_leave_when_the_table_is_full() {
    let mut decoder = Decoder::new();
    // Each entry takes 1,000 bytes: four of them fit.
    let value = |letter: char| letter.to_string().repeat(1000 - 32 - 1);
    for letter in ['a', 'b', 'c', 'd', 'e'] {
        decode(&mut decoder, &kept("n", &value(letter))).unwrap();
    }
    let newest = decode(&mut decoder, &[0xbe]).unwrap();
    assert_eq!(newest, fields(&[("n", &value('e'))]));
    let oldest = decode(&mut decoder, &[0xbe + 3]).unwrap();
    assert_eq!(oldest, fields(&[("n", &value('b'))]));
    assert_eq!(decode(&mut decoder, &[0xbe + 4]), Err(Undecodable), "the first one has gone");
}

#[test]
fn an_entry_may_take_its_name_from_the_one_it_pushes_out() {
    let mut decoder = Decoder::new();
    decode(&mut decoder, &kept("a-name", &"x".repeat(4000))).unwrap();
    let mut block = vec![0x40 | 62, 0x7f, 0x80 + (3000 - 127) as u8 % 128];
    block[2] = ((3000 - 127) % 128) as u8 | 0x80;
    block.push(((3000 - 127) / 128) as u8);
    block.extend("y".repeat(3000).bytes());
    let expected = fields(&[("a-name", &"y".repeat(3000))]);
    assert_eq!(decode(&mut decoder, &block).as_ref(), Ok(&expected));
    assert_eq!(decode(&mut decoder, &[0xbe]).as_ref(), Ok(&expected));
    assert_eq!(decode(&mut decoder, &[0xbf]), Err(Undecodable), "there was no room for both");
}

#[test]
fn the_table_follows_size_updates_at_the_start_of_a_block() {
    let mut decoder = Decoder::new();
    decode(&mut decoder, &kept("a", "1")).unwrap();
    // To 0 and back to 4,096: what was there is gone, what comes is kept.
    let block = [&[0x20, 0x3f, 0xe1, 0x1f][..], &kept("b", "2")].concat();
    decode(&mut decoder, &block).unwrap();
    assert_eq!(decode(&mut decoder, &[0xbe]).unwrap(), fields(&[("b", "2")]));
    assert_eq!(decode(&mut decoder, &[0xbf]), Err(Undecodable));
    assert_eq!(decode(&mut decoder, &[0x3f, 0xe2, 0x1f]), Err(Undecodable), "4,097 was never offered");
    assert_eq!(decode(&mut Decoder::new(), &[0x82, 0x20]), Err(Undecodable), "not at the start");
}

#[test]
fn blocks_that_mean_nothing_are_refused() {
    let blocks: [(&str, &[u8]); 12] = [
        ("index 0", &[0x80]),
        ("an index behind the tables", &[0xbe]),
        ("a name index behind the tables", &[0x7f, 0x00, 0x01, b'x']),
        ("an integer without end", &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
        ("an integer above all limits", &[0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        ("an integer cut off", &[0xff, 0x80]),
        ("a string cut off", &[0x00, 0x05, b'a']),
        ("a name without value", &[0x00, 0x01, b'a']),
        ("padding of zeros", &[0x00, 0x01, b'a', 0x81, 0b0001_1000]),
        ("padding of a whole byte", &[0x00, 0x01, b'a', 0x82, 0b0001_1111, 0xff]),
        ("an end of string", &[0x00, 0x01, b'a', 0x84, 0xff, 0xff, 0xff, 0xff]),
        ("an end of string between texts", &[0x00, 0x01, b'a', 0x85, 0xff, 0xff, 0xff, 0xfc, 0x1f]),
    ];
    for (what, block) in blocks {
        assert_eq!(decode(&mut Decoder::new(), block), Err(Undecodable), "{what}");
    }
}

#[test]
fn kinds_are_told_by_name_and_value_in_both_tables() {
    let kinds = |decoder: &mut Decoder, block: &[u8]| {
        let mut kinds = Vec::new();
        decoder.decode(block, |field| kinds.push(field.kind)).unwrap();
        kinds
    };
    let mut decoder = Decoder::new();
    assert_eq!(
        kinds(&mut decoder, &[0x83, 0x84, 0x87, 0x81]),
        [Kind::Method, Kind::Path, Kind::Scheme, Kind::Authority]
    );
    assert_eq!(kinds(&mut decoder, &kept("apns-id", "a\nb")), [Kind::Invalid]);
    let under_the_same_name = [0x40 | 62, 1, b'a'];
    assert_eq!(kinds(&mut decoder, &under_the_same_name), [Kind::ApnsId]);
    assert_eq!(kinds(&mut decoder, &[0xbe, 0xbf]), [Kind::ApnsId, Kind::Invalid]);
    for name in ["", "Apns-id", "a b", "a:b", "ä"] {
        assert_eq!(kinds(&mut decoder, &kept(name, "1")), [Kind::Invalid], "{name:?}");
    }
}

fn field() -> impl Strategy<Value = (String, Vec<u8>, bool)> {
    // Few names, so that both tables are used; values of all bytes that a field can have.
    let name = prop_oneof![
        "(apns-id|apns-topic|authorization|accept|user-agent|x-[a-d])",
        "[a-z][a-z0-9!#$%&'*+.^_`|~-]{0,40}",
    ];
    let name = name.prop_filter("about connections", |name| {
        !matches!(Kind::of(name.as_bytes()), Kind::Connection | Kind::Te | Kind::ContentLength)
    });
    let byte = prop_oneof![0x21..0x7f_u8, 0x80..=0xff_u8];
    let value =
        prop_oneof!["(|a|b|[0-9a-f]{64})".prop_map(String::into_bytes), prop::collection::vec(byte, 0..600)];
    (name, value, any::<bool>())
}

fn build(path: &str, fields: &[(String, Vec<u8>, bool)]) -> Request<()> {
    let mut request = Request::post(format!("https://localhost{path}"));
    for (name, value, sensitive) in fields {
        let mut value = HeaderValue::from_bytes(value).unwrap();
        value.set_sensitive(*sensitive);
        request = request.header(name, value);
    }
    request.body(()).unwrap()
}

/// Sends requests with the `h2` crate and returns what came out of the frames.
async fn carry(requests: Vec<Request<()>>) -> Vec<Seen> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let host = Recorder::default();
    let server = tokio::spawn(serve(Connection::new(host.clone(), LIMITS), ours, CancellationToken::new()));
    let (client, connection) = h2::client::handshake(theirs).await.unwrap();
    let connection = tokio::spawn(connection);
    for request in requests {
        let mut ready = client.clone().ready().await.unwrap();
        let (response, _) = ready.send_request(request, true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
    }
    drop(client);
    connection.await.unwrap().unwrap();
    server.await.unwrap();
    host.requests()
}

fn regular(seen: &Seen) -> Fields {
    let mut fields = seen.fields.clone();
    fields.retain(|(name, _)| !name.starts_with(b":"));
    fields.sort();
    fields
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_another_implementation_encodes_comes_out_again(
        requests in prop::collection::vec(("/[ -\"$->@-~]{0,80}".prop_map(|path| path.replace(' ', "/")), prop::collection::vec(field(), 0..12)), 1..12)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let built: Vec<_> = requests.iter().filter(|(path, _)| format!("https://localhost{path}").parse::<http::Uri>().is_ok()).collect();
        let seen = runtime.block_on(carry(built.iter().map(|(path, fields)| build(path, fields)).collect()));
        prop_assert_eq!(seen.len(), built.len());
        for ((path, fields), seen) in built.iter().zip(&seen) {
            let mut expected: Fields = fields.iter().map(|(name, value, _)| (name.clone().into_bytes(), value.clone())).collect();
            expected.sort();
            prop_assert_eq!(regular(seen), expected);
            prop_assert!(seen.fields.contains(&(b":path".to_vec(), path.clone().into_bytes())));
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..8)) {
        let mut decoder = Decoder::new();
        for block in blocks {
            let _ = decode(&mut decoder, &block);
        }
    }
}
