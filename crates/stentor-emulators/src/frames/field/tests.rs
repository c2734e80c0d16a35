//! Header fields as another implementation writes them, and as none should.

use super::*;
use crate::frames::rig::{LIMITS, Recorder, RigFields, Seen, literal};
use crate::frames::{Connection, serve};
use http::{HeaderValue, Request};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

/// A literal that enters the table.
fn entering(name: &str, value: &str) -> Vec<u8> {
    let mut block = literal(name, value);
    block[0] = 0x40;
    block
}

#[test]
fn kinds_are_told_by_name_and_value_in_both_tables() {
    let kinds = |decoder: &mut Decoder, block: &[u8]| {
        let mut kinds = Vec::new();
        decoder.decode(block, &mut |field: Field<'_>| kinds.push(field.kind)).unwrap();
        kinds
    };
    let mut decoder = Decoder::new();
    assert_eq!(
        kinds(&mut decoder, &[0x83, 0x84, 0x87, 0x81]),
        [HeaderKind::Method, HeaderKind::Path, HeaderKind::Scheme, HeaderKind::Authority]
    );
    assert_eq!(kinds(&mut decoder, &entering("apns-id", "a\nb")), [HeaderKind::Invalid]);
    let under_the_same_name = [0x40 | 62, 1, b'a'];
    assert_eq!(kinds(&mut decoder, &under_the_same_name), [HeaderKind::ApnsId]);
    assert_eq!(kinds(&mut decoder, &[0xbe, 0xbf]), [HeaderKind::ApnsId, HeaderKind::Invalid]);
    for name in ["", "Apns-id", "a b", "a:b", "ä"] {
        assert_eq!(kinds(&mut decoder, &entering(name, "1")), [HeaderKind::Invalid], "{name:?}");
    }
}

fn field() -> impl Strategy<Value = (String, Vec<u8>, bool)> {
    // Few names, so that both tables are used; values of all bytes that a field can have.
    let name = prop_oneof![
        "(apns-id|apns-topic|authorization|accept|user-agent|x-[a-d])",
        "[a-z][a-z0-9!#$%&'*+.^_`|~-]{0,40}",
    ];
    let name = name.prop_filter("about connections", |name| {
        !matches!(
            HeaderKind::of_name(name.as_bytes()),
            HeaderKind::Connection | HeaderKind::Te | HeaderKind::ContentLength
        )
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

/// Sends requests with the `h2` crate and returns the requests that the host received.
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

fn regular(seen: &Seen) -> RigFields {
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
            let mut expected: RigFields = fields.iter().map(|(name, value, _)| (name.clone().into_bytes(), value.clone())).collect();
            expected.sort();
            prop_assert_eq!(regular(seen), expected);
            prop_assert!(seen.fields.contains(&(b":path".to_vec(), path.clone().into_bytes())));
        }
    }
}
