//! Checks of this process' view of devices and messages, for use after it may have missed changes.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use stentor_core::device::Device;
use stentor_core::id::{AppId, MessageId};
use stentor_core::ports::store::StoreError;

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::session_claims::SessionClaim;
use crate::session_state::{Closed, SessionState};

/// Concurrent look-ups of devices.
const CHECKS_MAX_COUNT: usize = 16;
/// Largest assumed difference between the clocks of two servers.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(1);

impl Gateway {
    /// Returns true if any device is connected to this process.
    #[must_use]
    pub fn has_sessions(&self) -> bool {
        !self.state().registry.is_empty()
    }

    /// Lists the messages that are held back.
    #[must_use]
    pub fn held(&self) -> Vec<(AppId, MessageId)> {
        self.state().held.all()
    }

    /// Lists the messages that connected devices get next.
    #[must_use]
    pub fn next_messages(&self) -> BTreeSet<(AppId, MessageId)> {
        let of = |session: &Arc<SessionState>| {
            let app = session.identity().app;
            session.next_messages().into_iter().map(move |message| (app, message))
        };
        self.state().registry.all().iter().flat_map(of).collect()
    }

    /// Ends the sessions of devices that are removed, or may have got another token or keys since they connected; the latter reconnect.
    pub async fn check_sessions(&self) -> Result<(), StoreError> {
        let sessions = stream::iter(self.state().registry.all()).map(|session| self.check(session));
        sessions.buffer_unordered(CHECKS_MAX_COUNT).try_collect().await
    }

    /// Waits for session claims to announce to the other servers, and takes some.
    pub async fn next_claims(&self) -> Vec<SessionClaim> {
        self.state().claims.next(&self.state().registry).await
    }

    /// Queues claims again that could not be announced to the other servers.
    pub fn claim_again(&self, claims: &[SessionClaim]) {
        self.state().claims.note_again(claims);
    }

    /// Announces all sessions of this server, after it may have missed announcements of others. A server with a later session of a device
    /// replies, and the session here ends.
    pub fn claim_all(&self) {
        self.state().claims.note_all();
    }

    /// Processes another server's claim of a device: the session here ends, unless it is the later one.
    pub fn hear_claim(&self, claim: &SessionClaim) {
        let state = self.state();
        let Some(session) = state.registry.get(claim.identity.device) else { return };
        match state.claims.compare(&session, claim) {
            Ordering::Less => session.close(Closed::TakenOver),
            // This server's own claim, from before it rejoined the others.
            Ordering::Equal => {}
            // The other server has missed this server's claim.
            Ordering::Greater => state.claims.note(&session),
        }
    }

    async fn check(&self, session: Arc<SessionState>) -> Result<(), StoreError> {
        let DeviceIdentity { app, device } = session.identity();
        match self.store().device(app, device).await {
            Ok(device) if may_stay(&session, &device) => {}
            Ok(_) | Err(StoreError::NotFound(_)) => session.close(Closed::CutOff),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn may_stay(session: &SessionState, device: &Device) -> bool {
    // The time of a change of keys is not recorded.
    let is_same = device.token_since.plus(CLOCKS_DIFFER_MAX) < session.opened_at() && device.keys.is_none();
    device.listed && device.retired.is_none() && is_same
}
