use proptest::prelude::*;

use super::*;

fn written(stanza: &McsStanza) -> Vec<u8> {
    let mut out = Vec::new();
    stanza.write(&mut out);
    out
}

fn read(bytes: &[u8]) -> McsStanza {
    let frame = find_frame(bytes, 1 << 20).expect("in order").expect("whole");
    assert_eq!(frame.end, bytes.len());
    McsStanza::read(frame.tag, &bytes[frame.begin..frame.end]).expect("a stanza")
}

/// The bytes that firebase-messaging 0.4.5 writes with Google's library for the same stanzas.
#[test]
fn stanzas_have_the_bytes_that_a_foreign_library_writes() {
    let ping = McsStanza::HeartbeatPing(McsHeartbeat {
        last_stream_id_received: Some(3),
        ..McsHeartbeat::default()
    });
    assert_eq!(written(&ping), [0, 2, 0x10, 3]);
    assert_eq!(written(&McsStanza::Close), [4, 0]);
    let ack = McsStanza::Iq(McsIq::acknowledging(vec!["a".to_owned()]));
    assert_eq!(written(&ack), [7, 13, 0x10, 1, 0x1a, 0, 0x3a, 7, 8, 12, 0x12, 3, 0x0a, 1, b'a']);
    let reply = McsStanza::LoginReply(McsLoginReply { id: "c".to_owned(), ..McsLoginReply::default() });
    assert_eq!(written(&reply), [3, 3, 0x0a, 1, b'c']);
}

/// The login of firebase-messaging 0.4.5, the version before it left out.
const LOGIN: &[u8] = b"\x02\x4e\x0a\x01v\x12\x0fmcs.android.com\x1a\x0211\x22\x0211\x2a\x0222\x32\x09android-b\
\x42\x0b\x0a\x06new_vc\x12\x011\x52\x01m\x60\x00\x6a\x07\x0a\x00\x10\x01\x18\x90\x4e\x70\x01\x80\x01\x02\x88\x01\x01";

#[test]
fn a_foreign_login_is_read_and_written_again_as_it_was() {
    let stanza = read(LOGIN);
    assert_eq!(written(&stanza), LOGIN);
    let McsStanza::LoginRequest(login) = stanza else { panic!("no login: {stanza:?}") };
    assert_eq!((login.user.as_str(), login.auth_token.as_str()), ("11", "22"));
    assert_eq!(login.received_persistent_ids, ["m"]);
    assert_eq!(login.heartbeat_stat.map(|stat| stat.interval_ms), Some(10_000));
}

#[test]
fn what_is_required_is_written_though_it_is_empty() {
    let data = McsStanza::Data(Box::default());
    assert_eq!(written(&data), [8, 4, 0x1a, 0, 0x2a, 0]);
}

#[test]
fn lengths_that_are_too_large_or_too_long_are_refused() {
    assert_eq!(find_frame(&[8, 0x80, 1], 128), Ok(None));
    assert_eq!(find_frame(&[8, 0x80, 1], 127), Err(WireError::TooLarge { max_bytes: 127 }));
    assert_eq!(find_frame(&[8, 0xff, 0xff, 0xff, 0xff], 10), Ok(None));
    assert!(find_frame(&[8, 0xff, 0xff, 0xff, 0xff, 0xff], usize::MAX).is_err());
    assert!(find_frame(&[8, 0xff, 0xff, 0xff, 0xff, 0x7f], 1 << 20).is_err());
}

#[test]
fn secrets_are_not_shown() {
    let login = McsLoginRequest { auth_token: "very secret".to_owned(), ..McsLoginRequest::default() };
    assert!(!format!("{login:?}").contains("secret"));
    let reply = McsCheckinReply { security_token: Some(4_711), ..McsCheckinReply::default() };
    assert!(!format!("{reply:?}").contains("4711"));
}

#[test]
fn how_far_was_received_is_said_and_read_where_there_is_a_field_for_it() {
    let mut iq = McsStanza::Iq(McsIq::stream_ack());
    assert!(iq.say_received(7));
    assert_eq!(read(&written(&iq)).last_received(), Some(7));
    assert!(!McsStanza::Close.say_received(7));
}

fn stanzas() -> impl Strategy<Value = McsStanza> {
    let data = (
        "\\PC{0,9}",
        "\\PC{0,9}",
        prop::collection::vec(("\\PC{0,9}", "\\PC{0,9}"), 0..5),
        any::<Option<Vec<u8>>>(),
    );
    let data = data.prop_map(|(from, category, entries, raw_data)| {
        let entry = |(key, value)| McsAppData { key, value };
        let app_data = entries.into_iter().map(entry).collect();
        McsStanza::Data(Box::new(McsData { from, category, app_data, raw_data, ..McsData::default() }))
    });
    let login = (any::<u64>(), prop::collection::vec("\\PC{0,9}", 0..5)).prop_map(|(user, ids)| {
        let user = user.to_string();
        let request = McsLoginRequest { user, received_persistent_ids: ids, ..McsLoginRequest::default() };
        McsStanza::LoginRequest(Box::new(request))
    });
    let iq =
        prop::collection::vec("\\PC{0,9}", 0..5).prop_map(|ids| McsStanza::Iq(McsIq::acknowledging(ids)));
    let beat = any::<Option<i32>>().prop_map(|last_stream_id_received| {
        McsStanza::HeartbeatAck(McsHeartbeat { last_stream_id_received, ..McsHeartbeat::default() })
    });
    prop_oneof![data, login, iq, beat, Just(McsStanza::Close)]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(stanza in stanzas()) {
        prop_assert_eq!(read(&written(&stanza)), stanza);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some(frame)) = find_frame(&bytes, 64) {
            let _ = McsStanza::read(frame.tag, &bytes[frame.begin..frame.end]);
        }
        let _ = McsCheckinRequest::read(&bytes);
    }

    #[test]
    fn a_frame_is_found_as_soon_as_its_last_byte_is_there(stanza in stanzas()) {
        let bytes = written(&stanza);
        for length in 0..bytes.len() {
            prop_assert_eq!(find_frame(&bytes[..length], 1 << 20), Ok(None));
        }
    }
}
