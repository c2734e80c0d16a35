//! The login of a connection.

use std::time::Duration;

use stentor_wire::mcs::{McsErrorInfo, McsHeartbeatConfig, McsLoginReply, McsLoginRequest};

use super::agent::McsAgent;
use super::limits::McsLimits;
use crate::gateway::Gateway;

/// A valid login of a device.
pub(super) struct McsLogin {
    pub(super) agent: McsAgent,
    /// Silence after which the server sends a heartbeat.
    pub(super) heartbeat: Duration,
    /// Persistent ids received over an earlier connection.
    pub(super) received: Vec<String>,
    /// The device's id of the login request, which the reply repeats.
    pub(super) id: String,
}

/// Checks a login. The error is the reply that rejects it.
pub(super) fn check(
    gateway: &Gateway,
    request: McsLoginRequest,
    limits: &McsLimits,
) -> Result<McsLogin, Box<McsLoginReply>> {
    let agent = McsAgent::parse(&request.user);
    let proved = |agent: &McsAgent| {
        request.auth_token.parse().is_ok_and(|security_token| agent.fits(security_token, gateway.key()))
    };
    let Some(agent) = agent.filter(proved) else {
        gateway.counts().note_refused_login();
        let why = "the android id or its security token is wrong: check in again";
        return Err(Box::new(refusal(request.id, 401, why)));
    };
    let wanted = request.heartbeat_stat.as_ref().map_or(0, |stat| stat.interval_ms.max(0).unsigned_abs());
    // A device may choose a shorter interval. With a longer one, networks would drop the connection.
    let heartbeat = match wanted {
        0 => limits.heartbeat,
        wanted => Duration::from_millis(wanted.into()).max(limits.heartbeat_min).min(limits.heartbeat),
    };
    Ok(McsLogin { agent, heartbeat, received: request.received_persistent_ids, id: request.id })
}

/// Creates the reply to a successful login.
pub(super) fn accepted(gateway: &Gateway, login: &McsLogin) -> McsLoginReply {
    let interval_ms = i32::try_from(login.heartbeat.as_millis()).ok();
    McsLoginReply {
        id: login.id.clone(),
        heartbeat_config: Some(McsHeartbeatConfig { interval_ms, ..McsHeartbeatConfig::default() }),
        server_timestamp: Some(gateway.clock().now().as_millis()),
        ..McsLoginReply::default()
    }
}

/// Creates the reply to a rejected login.
pub(super) fn refusal(id: String, code: i32, message: &str) -> McsLoginReply {
    let error = McsErrorInfo { code, message: Some(message.to_owned()), ..McsErrorInfo::default() };
    McsLoginReply { id, error: Some(error), ..McsLoginReply::default() }
}
