use std::time::Duration;

use secrecy::SecretString;
use stentor_gateway::client::{McsClientError, McsClientEvent};
use stentor_gateway::mcs::{self, McsLimits};
use stentor_wire::mcs::{McsCheckinReply, McsCheckinRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::program::{Program, end, event, heard};
use crate::room::Room;

#[tokio::test]
async fn a_program_that_checks_in_again_stays_the_same_and_a_liar_becomes_another() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let again = |token: u64| {
        let request = McsCheckinRequest {
            android_id: i64::try_from(program.android_id).ok(),
            security_token: Some(token),
            version: Some(3),
        };
        McsCheckinReply::read(&mcs::check_in(&room.gateway, &request.write()).body).expect("a reply")
    };
    assert_eq!(again(program.security_token).android_id, Some(program.android_id));
    assert_eq!(again(program.security_token).security_token, Some(program.security_token));
    assert_ne!(again(program.security_token ^ 1).android_id, Some(program.android_id));
    assert_eq!(mcs::check_in(&room.gateway, &[0xff]).status, 400);
}

#[tokio::test]
async fn only_the_security_token_of_its_android_id_lets_a_program_in() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let mut client = program.connect().await;
    heard(&mut client).await;
    for wrong in ["", "1", "-1", &(program.security_token ^ 1).to_string()] {
        let mut login = program.login();
        login.security_token = SecretString::from(wrong);
        let refused = program.connect_with(login).await.expect_err("refused");
        assert!(matches!(refused, McsClientError::Refused { code: 401, .. }), "{refused}");
    }
    assert_eq!(room.gateway.stats().refused_logins, 4);
}

#[tokio::test]
async fn what_is_not_the_protocol_ends_the_connection_with_a_word() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[41, 0, 0],
        &[41, 2, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[41, 2, 1, 0xff],
    ] {
        let mut wire = program.wire();
        wire.write_all(bytes).await.expect("written");
        let mut answer = Vec::new();
        wire.read_to_end(&mut answer).await.expect("ended");
        assert_eq!(answer[..2], [41, 10], "a stream error after the version: {answer:?}");
    }
}

#[tokio::test]
async fn who_does_not_log_in_is_cut_off() {
    let room = Room::new().await;
    let mut program = Program::check_in(&room.gateway);
    program.limits = McsLimits { login_timeout: Duration::from_millis(20), ..program.limits };
    let mut wire = program.wire();
    let mut answer = Vec::new();
    wire.read_to_end(&mut answer).await.expect("ended");
    assert_eq!(answer, [41, 4, 0]);
}

#[tokio::test]
async fn a_device_that_writes_to_an_ended_connection_still_learns_the_reason() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let mut first = program.connect().await;
    let _second = program.connect().await;
    while first.ping().await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(end(&mut first).await, "conflict");
}

#[tokio::test]
async fn a_silent_device_is_asked_whether_it_is_there_and_then_cut_off() {
    let room = Room::new().await;
    let mut program = Program::check_in(&room.gateway);
    // Long enough for a machine on which other tests hold the processors.
    let short = Duration::from_millis(150);
    program.limits = McsLimits {
        heartbeat: short,
        heartbeat_min: Duration::from_millis(1),
        heartbeat_ack_timeout: short,
        ..program.limits
    };
    let mut client = program.connect().await;
    // Its heartbeats are answered while the test waits. The task ends only when another connection takes its place.
    let waits = tokio::spawn(async move { end(&mut client).await });
    for _ in 0..5 {
        let mut other = Program { android_id: program.android_id, ..Program::check_in(&room.gateway) };
        other.limits = program.limits;
        other.limits.login_timeout = short;
        let mut wire = other.wire();
        wire.read_to_end(&mut Vec::new()).await.expect("ended");
    }
    assert!(!waits.is_finished());
    let mut silent = program.connect().await;
    assert_eq!(waits.await.expect("ended"), "conflict");
    let (mut wire, mut answer) = (program.wire(), Vec::new());
    drop(silent.ping().await);
    wire.write_all(&login_bytes(&program)).await.expect("written");
    wire.read_to_end(&mut answer).await.expect("ended");
    assert!(answer.ends_with(&[4, 0]), "a close after a ping that nobody answered: {answer:?}");
}

#[tokio::test]
async fn a_program_without_a_registration_has_no_place_to_keep_and_ends_soon() {
    let room = Room::new().await;
    let lonely_max = Duration::from_millis(50);
    for (is_registered, is_ended) in [(false, true), (true, false)] {
        let mut program = Program::check_in(&room.gateway);
        program.limits = McsLimits { lonely_max, ..program.limits };
        if is_registered {
            program.register(room.app, "one").await;
        }
        let (mut here, there) = tokio::io::duplex(1 << 16);
        let admitted = CancellationToken::new();
        let serving = mcs::serve(
            room.gateway.clone(),
            there,
            program.stopping.clone(),
            admitted.clone(),
            program.limits,
        );
        let serving = tokio::spawn(serving);
        here.write_all(&login_bytes(&program)).await.expect("written");
        if is_ended {
            here.read_to_end(&mut Vec::new()).await.expect("ended");
            serving.await.expect("served");
        } else {
            // At once, and not with the first stanza of the device.
            tokio::time::timeout(Duration::from_secs(10), admitted.cancelled()).await.expect("admitted");
            let mut client = program.connect().await;
            heard(&mut client).await;
            tokio::time::timeout(2 * lonely_max, end(&mut client)).await.expect_err("it stays");
            serving.await.expect("another connection took its place");
        }
        assert_eq!(admitted.is_cancelled(), is_registered);
    }
}

pub(super) fn login_bytes(program: &Program) -> Vec<u8> {
    let request = stentor_wire::mcs::McsLoginRequest {
        user: program.android_id.to_string(),
        auth_token: program.security_token.to_string(),
        ..Default::default()
    };
    let mut bytes = vec![41];
    stentor_wire::mcs::McsStanza::LoginRequest(Box::new(request)).write(&mut bytes);
    bytes
}

#[tokio::test]
async fn a_second_connection_takes_over_from_the_first() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    program.register(room.app, "one").await;
    let mut first = program.connect().await;
    heard(&mut first).await;
    let mut second = program.connect().await;
    assert_eq!(end(&mut first).await, "conflict");
    heard(&mut second).await;
}

#[tokio::test]
async fn when_the_server_stops_it_says_so() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let mut client = program.connect().await;
    client.ping().await.expect("asked");
    assert_eq!(event(&mut client).await, McsClientEvent::Alive);
    program.stopping.cancel();
    assert_eq!(end(&mut client).await, "close");
}
