//! The beginning of a connection: who it is.

use std::time::Duration;

use stentor_wire::mcs::{McsErrorInfo, McsHeartbeatConfig, McsLoginReply, McsLoginRequest};

use super::agent::McsAgent;
use super::limits::McsLimits;
use crate::gateway::Gateway;

/// A device whose login was in order.
pub(super) struct McsLogin {
    pub(super) agent: McsAgent,
    /// Silence before it is asked whether it is there.
    pub(super) heartbeat: Duration,
    /// What it got through an earlier connection.
    pub(super) received: Vec<String>,
    /// What it calls itself, which the reply repeats.
    pub(super) id: String,
}

/// Reads a login; `Err` is the reply that refuses it.
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
    // Oftener is the device's to choose; more rarely, networks would have dropped the line.
    let heartbeat = match wanted {
        0 => limits.heartbeat,
        wanted => Duration::from_millis(wanted.into()).max(limits.heartbeat_min).min(limits.heartbeat),
    };
    Ok(McsLogin { agent, heartbeat, received: request.received_persistent_ids, id: request.id })
}

/// Makes the reply that lets a device in.
pub(super) fn accepted(gateway: &Gateway, login: &McsLogin) -> McsLoginReply {
    let interval_ms = i32::try_from(login.heartbeat.as_millis()).ok();
    McsLoginReply {
        id: login.id.clone(),
        heartbeat_config: Some(McsHeartbeatConfig { interval_ms, ..McsHeartbeatConfig::default() }),
        server_timestamp: Some(gateway.clock().now().as_millis()),
        ..McsLoginReply::default()
    }
}

/// Makes the reply that does not.
pub(super) fn refusal(id: String, code: i32, message: &str) -> McsLoginReply {
    let error = McsErrorInfo { code, message: Some(message.to_owned()), ..McsErrorInfo::default() };
    McsLoginReply { id, error: Some(error), ..McsLoginReply::default() }
}
