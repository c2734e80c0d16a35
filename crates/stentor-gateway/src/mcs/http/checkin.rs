//! The check-in of programs, which assigns android ids.

use stentor_wire::mcs::{McsCheckinReply, McsCheckinRequest};

use super::reply::McsReply;
use crate::gateway::Gateway;
use crate::mcs::agent::McsAgent;

/// The version of the server's settings, of which there are none.
const SETTINGS_VERSION: &str = "1";

/// Handles `POST /checkin`: assigns an android id to a program that has none, or none of this server.
#[must_use]
pub fn check_in(gateway: &Gateway, body: &[u8]) -> McsReply {
    let Ok(request) = McsCheckinRequest::read(body) else {
        return McsReply::text(400, "the body must be an AndroidCheckinRequest");
    };
    let known = request.android_id.and_then(|id| McsAgent::of(u64::try_from(id).ok()?));
    let known = known.filter(|agent| agent.fits(request.security_token.unwrap_or_default(), gateway.key()));
    let agent = known.unwrap_or_else(McsAgent::draw);
    let reply = McsCheckinReply {
        stats_ok: true,
        time_msec: Some(gateway.clock().now().as_millis()),
        android_id: Some(agent.android_id()),
        security_token: Some(agent.security_token(gateway.key())),
        version_info: Some(SETTINGS_VERSION.to_owned()),
    };
    McsReply::protobuf(reply.write())
}
