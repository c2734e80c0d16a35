//! Frames are followed, injected and taken out wherever the bytes happen to be cut.

use super::frame::{FrameFollower, patch_max_streams};
use super::{PREFACE_BYTES, Wire, goaway, settings_max_streams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
const SETTINGS_ACK: &[u8] = &[0, 0, 0, 4, 1, 0, 0, 0, 0];

#[test]
fn boundaries_are_found_however_the_bytes_are_cut() {
    let frames = [PING, SETTINGS_ACK, PING].concat();
    for size in 1..=frames.len() {
        let mut follower = FrameFollower::default();
        let mut written = 0;
        for piece in frames.chunks(size) {
            follower.follow(piece);
            written += piece.len();
            let at_boundary = [0, 17, 26, 43].contains(&written);
            assert_eq!(follower.at_boundary(), at_boundary, "after {written} bytes in pieces of {size}");
        }
    }
}

#[test]
fn the_stream_limit_of_a_whole_settings_frame_is_replaced() {
    let mut frame = settings_max_streams(1000);
    assert!(!patch_max_streams(&mut frame[..12], 1), "not all of it is there yet");
    assert!(patch_max_streams(&mut frame, 1));
    assert_eq!(frame, settings_max_streams(1));
}

#[tokio::test]
async fn injected_frames_wait_for_the_end_of_a_frame() {
    let (ours, mut theirs) = tokio::io::duplex(1024);
    let (mut wire, handle) = Wire::new(ours, None);
    wire.write_all(&PING[..5]).await.unwrap();
    let injected = goaway(7, 0, b"bye");
    handle.inject(&injected);
    wire.flush().await.unwrap();
    wire.write_all(&PING[5..]).await.unwrap();
    wire.flush().await.unwrap();
    let mut found = vec![0; PING.len() + injected.len()];
    theirs.read_exact(&mut found).await.unwrap();
    assert_eq!(found, [PING, &injected].concat());
}

#[tokio::test]
async fn acknowledgements_after_the_first_are_taken_out() {
    let frames = [PING, SETTINGS_ACK, PING, SETTINGS_ACK, SETTINGS_ACK, PING].concat();
    let expected = [&[b'x'; PREFACE_BYTES], PING, SETTINGS_ACK, PING, PING].concat();
    for size in 1..=frames.len() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let (mut wire, handle) = Wire::new(ours, None);
        let sent = [&[b'x'; PREFACE_BYTES], frames.as_slice()].concat();
        let write = async move {
            for piece in sent.chunks(size) {
                theirs.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let mut found = Vec::new();
        let (_, read) = tokio::join!(write, wire.read_to_end(&mut found));
        read.unwrap();
        assert_eq!(found, expected, "in pieces of {size}");
        assert_eq!(handle.acknowledged(), 3);
    }
}

const COLON_HEADERS: &[u8] = b"\0\0\x08\x01\x04\0\0\0\x01\x83\x46\x85\x9d\x29\xad\x17\x3f";
const MENDED_HEADERS: &[u8] = b"\0\0\x08\x01\x04\0\0\0\x01\x83\x46\x05https";
const DATA_LIKE_HEADERS: &[u8] = b"\0\0\x07\0\x01\0\0\0\x01\x46\x85\x9d\x29\xad\x17\x3f";

/// Passes bytes through a wire in pieces, and returns what comes out.
async fn passed(mends_scheme: bool, frames: &[u8], piece_bytes: usize) -> Vec<u8> {
    let (ours, mut theirs) = tokio::io::duplex(1024);
    let mut wire = Wire::new(ours, None).0.mending_scheme(mends_scheme);
    let sent = [&[b'x'; PREFACE_BYTES], frames].concat();
    let write = async move {
        for piece in sent.chunks(piece_bytes) {
            theirs.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let mut found = Vec::new();
    let (_, read) = tokio::join!(write, wire.read_to_end(&mut found));
    read.unwrap();
    found.split_off(PREFACE_BYTES)
}

#[tokio::test]
async fn a_scheme_is_mended_in_headers_alone_however_they_are_cut() {
    let frames = [PING, COLON_HEADERS, DATA_LIKE_HEADERS, COLON_HEADERS, PING].concat();
    let expected = [PING, MENDED_HEADERS, DATA_LIKE_HEADERS, MENDED_HEADERS, PING].concat();
    for size in 1..=frames.len() {
        assert_eq!(passed(true, &frames, size).await, expected, "in pieces of {size}");
    }
    assert_eq!(passed(false, &frames, 10).await, frames, "a wire that does not mend");
}

#[tokio::test]
async fn headers_without_an_end_are_passed_on_as_they_came() {
    let cut = &COLON_HEADERS[..COLON_HEADERS.len() - 1];
    assert_eq!(passed(true, cut, 10).await, cut);
}
