use proptest::prelude::*;

use super::*;

#[test]
fn codes_have_the_names_of_the_rfc() {
    let names = [ErrorCode::NO_ERROR, ErrorCode::REFUSED_STREAM, ErrorCode::HTTP_1_1_REQUIRED, ErrorCode(99)];
    let expected = ["NO_ERROR", "REFUSED_STREAM", "HTTP_1_1_REQUIRED", "code 0x63"];
    assert_eq!(names.map(|code| code.to_string()), expected);
}

#[test]
fn padding_is_taken_off_and_may_not_be_longer_than_its_frame() {
    let padded = FrameHeader { length: 4, kind: kind::DATA, flags: flag::PADDED, stream: 1 };
    let plain = FrameHeader { flags: flag::END_STREAM, ..padded };
    assert_eq!(unpadded(plain, &[3, 1, 0, 0]), Ok(&[3, 1, 0, 0][..]));
    assert_eq!(unpadded(padded, &[2, 1, 0, 0]), Ok(&[1][..]));
    assert_eq!(unpadded(padded, &[3, 1, 0, 0]), Ok(&[][..]));
    let code = |payload| unpadded(padded, payload).map_err(|(code, _)| code);
    assert_eq!(code(&[4, 1, 0, 0]), Err(ErrorCode::PROTOCOL_ERROR));
    assert_eq!(code(&[]), Err(ErrorCode::FRAME_SIZE_ERROR));
}

proptest! {
    #[test]
    fn a_header_that_was_written_is_read_again(
        length in 0..=PAYLOAD_LIMIT_BYTES, kind: u8, flags: u8, stream in 0..=WINDOW_MAX_BYTES, rest: Vec<u8>,
    ) {
        let header = FrameHeader { length, kind, flags, stream };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        let mut filled = [0xff; FRAME_HEADER_BYTES + 2];
        header.fill(&mut filled, 1);
        prop_assert_eq!(&filled[1..=FRAME_HEADER_BYTES], &bytes[..]);
        prop_assert_eq!(FrameHeader::read(&bytes[..FRAME_HEADER_BYTES - 1]), None);
        // The reserved bit of the stream means nothing.
        bytes[5] |= 0x80;
        bytes.extend(rest);
        prop_assert_eq!(FrameHeader::read(&bytes), Some(header));
    }

    #[test]
    fn settings_that_were_written_are_read_again(sent: Vec<(u16, u32)>) {
        let mut bytes = Vec::new();
        write_settings(&sent, &mut bytes);
        let payload = &bytes[FRAME_HEADER_BYTES..];
        prop_assert_eq!(FrameHeader::read(&bytes).map(|header| header.length), Some(payload.len()));
        prop_assert_eq!(settings(payload).map(Iterator::collect), Some(sent));
        prop_assert!(settings(&[payload, &[0]].concat()).is_none());
    }
}
