//! HTTP/2 connections to both emulators, under policies that inject frames: any bytes in any pieces end in order.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{ApnsConfig, ApnsOptions, FcmConfig, ObserverConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const POLICIES: [&str; 4] = [
    "{}",
    r#"{"goaway": {"after_requests": 3, "unprocessed": 1}, "latency": {"kind": "fixed", "ms": 5.0}}"#,
    r#"{"streams": {"initial": 1, "after_reject": 1, "on_excess": "go_away"}, "mix": "realistic"}"#,
    r#"{"goaway": {"after_requests": 2, "then": "close"}, "resets": {"every": 2, "code": "cancel"}}"#,
];
const BUFFER_BYTES: usize = 64 * 1024;

static FRONTS: LazyLock<Vec<InProcessEmulator>> =
    LazyLock::new(|| POLICIES.iter().flat_map(|policy| fronts(policy)).collect());
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().start_paused(true).build().unwrap());

fn fronts(policy: &str) -> [InProcessEmulator; 2] {
    let observer = || ObserverConfig { path: None, capacity_tokens: 1000 };
    let policy = || serde_json::from_str(policy).unwrap();
    let mut fcm = FcmConfig { policy: policy(), observer: observer(), ..FcmConfig::default() };
    fcm.vendor.auth.required = false;
    let apns = ApnsConfig {
        policy: policy(),
        observer: observer(),
        vendor: ApnsOptions { require_token: false, ..ApnsOptions::default() },
        ..ApnsConfig::default()
    };
    [InProcessEmulator::fcm(fcm).unwrap(), InProcessEmulator::apns(apns).unwrap()]
}

fuzz_target!(|input: &[u8]| {
    let Some((&[front, piece_bytes], frames)) = input.split_first_chunk::<2>() else { return };
    let front = &FRONTS[usize::from(front) % FRONTS.len()];
    RUNTIME.block_on(async {
        let (ours, theirs) = duplex(BUFFER_BYTES);
        let (mut read, mut write) = tokio::io::split(theirs);
        let send = async {
            let _ = write.write_all(PREFACE).await;
            for piece in frames.chunks(usize::from(piece_bytes) + 1) {
                let _ = write.write_all(piece).await;
                tokio::task::yield_now().await;
            }
            let _ = write.shutdown().await;
        };
        let receive = async {
            let _ = read.read_to_end(&mut Vec::new()).await;
        };
        tokio::join!(front.serve(ours), send, receive);
    });
});
