//! The login of a device.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mqtt_protocol_core::mqtt::result_code::{ConnectReasonCode, DisconnectReasonCode};
use rand::Rng;
use secrecy::ExposeSecret;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Duration;

use super::fault::{MqttEnd, MqttFault};
use super::limits::{CLIENT_ID_MAX_BYTES, MqttLimits};
use super::link::MqttLink;
use super::request::{MqttConnect, MqttPublish, MqttRequest, MqttVersion};
use super::session_record::{self, MqttSessionStart, SEPARATOR, WantedSession};
use super::upstream::draft_of;
use super::will::WaitingWill;
use super::writer::MqttAdmission;
use crate::device_logins::{LoginError, LoginKeys};
use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;

/// Random bytes of a client id assigned by the server.
const CLIENT_ID_BYTES: usize = 12;

/// The reason code and description of a rejected login.
type ConnectRefusal = (ConnectReasonCode, &'static str);

/// A successful login.
pub(super) struct MqttLogin {
    pub(super) identity: DeviceIdentity,
    pub(super) keys: LoginKeys,
    /// The record of its session, if the session outlives this connection.
    pub(super) record: Option<Box<str>>,
    pub(super) is_resumed: bool,
    /// Boxed, because few devices have one.
    pub(super) will: Option<Box<WaitingWill>>,
    pub(super) window: u16,
    /// Silence after which the device counts as gone.
    pub(super) silence_max: Duration,
}

/// Waits for the login and answers it; `None` if the connection has ended.
pub(super) async fn enter<S: AsyncRead + AsyncWrite + Unpin>(
    gateway: &Gateway,
    link: &mut MqttLink<S>,
    limits: &MqttLimits,
) -> Option<Box<MqttLogin>> {
    let stopping = link.stopping.clone();
    let login = async {
        tokio::select! {
            biased;
            // First, so that a stopping server accepts no login.
            () = stopping.cancelled() => None,
            login = answer(gateway, link, limits) => login,
        }
    };
    // The timeout includes the store and the reply, so that no connection without a login lasts.
    let login: std::pin::Pin<Box<_>> = Box::pin(tokio::time::timeout(limits.login_timeout, login));
    login.await.ok().flatten()
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    gateway: &Gateway,
    link: &mut MqttLink<S>,
    limits: &MqttLimits,
) -> Option<Box<MqttLogin>> {
    let admitted = match link.request().await {
        Ok(MqttRequest::Connect(connect)) => {
            // The reply has the version of the request.
            link.writer.set_version(connect.version);
            link.writer.set_packet_max_bytes(connect.packet_max_bytes);
            admit(gateway, link, *connect, limits).await
        }
        Ok(_) => return None,
        Err(end) => {
            refuse_unreadable(link, end);
            let _last_words = link.flush().await;
            return None;
        }
    };
    if let Err((code, text)) = &admitted {
        link.writer.refuse(*code, text);
    }
    link.flush().await.ok()?;
    // Only now: before its login a device may send only small packets.
    link.reader.set_packet_max_bytes(limits.packet_max_bytes);
    admitted.ok().map(Box::new)
}

/// Answers an unreadable login, as far as the version provides a reply.
fn refuse_unreadable<S: AsyncRead + AsyncWrite + Unpin>(link: &mut MqttLink<S>, end: MqttEnd) {
    let MqttEnd::Fault(MqttFault { code, text }) = end else { return };
    match link.reader.version() {
        Some(MqttVersion::V5) => {
            link.writer.set_version(MqttVersion::V5);
            let code = match code {
                DisconnectReasonCode::PacketTooLarge => ConnectReasonCode::PacketTooLarge,
                DisconnectReasonCode::ProtocolError => ConnectReasonCode::ProtocolError,
                _ => ConnectReasonCode::MalformedPacket,
            };
            link.writer.refuse(code, text);
        }
        None if code == DisconnectReasonCode::ImplementationSpecificError => link.writer.refuse_version(),
        Some(MqttVersion::V3) | None => {}
    }
}

async fn admit<S: AsyncRead + AsyncWrite + Unpin>(
    gateway: &Gateway,
    link: &mut MqttLink<S>,
    connect: MqttConnect,
    limits: &MqttLimits,
) -> Result<MqttLogin, ConnectRefusal> {
    check(&connect)?;
    let (identity, keys) = login(gateway, &connect).await?;
    let assigned = connect.client_id.is_empty().then(new_client_id);
    let client_id = assigned.clone().unwrap_or_else(|| connect.client_id.clone());
    // The delay of a will ends with its session at the latest (3.1.3.2.2 of MQTT 5).
    let delay_seconds = connect.will.as_ref().map_or(0, |will| will.delay_seconds);
    let will_delay = limits.will_delay_max.min(Duration::from_secs(delay_seconds.into()));
    let wanted = WantedSession {
        client_id: &client_id,
        is_clean: connect.is_clean,
        expiry_seconds: connect.session_expiry_seconds,
        has_delayed_will: !will_delay.is_zero(),
    };
    let begun = session_record::begin(gateway, identity, wanted).await;
    let MqttSessionStart { is_resumed, record, outcome } =
        begun.map_err(|_| (ConnectReasonCode::ServerUnavailable, "the store is unavailable"))?;
    let (announced, silence_max) = keep_alive(&connect, limits);
    link.writer.admit(&MqttAdmission {
        is_resumed,
        assigned: assigned.as_deref(),
        keep_alive_seconds: announced,
        packet_max_bytes: limits.packet_max_bytes,
    });
    Ok(MqttLogin {
        identity,
        keys,
        will: connect.will.map(|will| {
            let expiry_seconds = connect.session_expiry_seconds;
            Box::new(WaitingWill { publish: will.publish, delay: will_delay, expiry_seconds, outcome })
        }),
        record,
        is_resumed,
        window: connect.receive_max_count.min(limits.window_max_count),
        silence_max,
    })
}

/// Checks everything that needs no look-up.
fn check(connect: &MqttConnect) -> Result<(), ConnectRefusal> {
    if connect.has_method {
        let text = "log in with the device's token as user name and its secret as password";
        return Err((ConnectReasonCode::BadAuthenticationMethod, text));
    }
    // A session without a client id could not be found again (3.1.3-8 of MQTT 3.1.1).
    let is_nameless = connect.client_id.is_empty() && connect.version == MqttVersion::V3 && connect.is_kept();
    // A client id should have no control characters (1.5.3 of 3.1.1, 1.5.4 of MQTT 5).
    let is_readable = !connect.client_id.contains(SEPARATOR);
    if is_nameless || !is_readable || connect.client_id.len() > CLIENT_ID_MAX_BYTES {
        return Err((ConnectReasonCode::ClientIdentifierNotValid, "a client id has 1 to 256 bytes"));
    }
    // 3.2.2.3.4 of MQTT 5; 3.1.1 cannot announce a maximum.
    if connect.will.as_ref().is_some_and(|will| will.publish.qos > 1) {
        return Err((ConnectReasonCode::QosNotSupported, "QoS 0 and 1 are supported"));
    }
    let is_upstream = |publish: &MqttPublish| publish.has_topic_name() && draft_of(publish).is_some();
    if connect.will.as_ref().is_some_and(|will| !is_upstream(&will.publish)) {
        return Err((ConnectReasonCode::TopicNameInvalid, "a will is published to upstream/..."));
    }
    Ok(())
}

async fn login(
    gateway: &Gateway,
    connect: &MqttConnect,
) -> Result<(DeviceIdentity, LoginKeys), ConnectRefusal> {
    let (Some(token), Some(secret)) = (&connect.token, &connect.secret) else {
        let text = "the user name is the device's token, and the password its secret";
        return Err((ConnectReasonCode::NotAuthorized, text));
    };
    match gateway.login_with_keys(token, secret.expose_secret()).await {
        Ok(found) => Ok(found),
        Err(LoginError::Refused) => {
            Err((ConnectReasonCode::BadUserNameOrPassword, "the token or the secret is wrong"))
        }
        Err(LoginError::Store(_)) => Err((ConnectReasonCode::ServerUnavailable, "the store is unavailable")),
    }
}

/// Returns the keep alive to announce in place of the device's own, and the longest silence: one and a half times the keep alive (3.1.2.10
/// of both versions).
fn keep_alive(connect: &MqttConnect, limits: &MqttLimits) -> (Option<u16>, Duration) {
    let wanted = connect.keep_alive_seconds;
    let is_too_long = wanted == 0 || wanted > limits.keep_alive_max_seconds;
    let announced =
        (connect.version == MqttVersion::V5 && is_too_long).then_some(limits.keep_alive_max_seconds);
    let seconds = announced.unwrap_or(wanted);
    let silence_max =
        if seconds == 0 { limits.silence_max } else { Duration::from_millis(u64::from(seconds) * 1_500) };
    (announced, silence_max)
}

fn new_client_id() -> String {
    let mut bytes = [0_u8; CLIENT_ID_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    format!("stentor-{}", URL_SAFE_NO_PAD.encode(bytes))
}
