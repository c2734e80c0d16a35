//! What this process believes of devices and messages, for whoever may have missed that it changed.

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

/// Devices that are looked up at once.
const CHECKS_MAX_COUNT: usize = 16;
/// By so much the clocks of two servers may differ.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(1);

impl Gateway {
    /// Returns whether any device is connected to this process.
    #[must_use]
    pub fn has_sessions(&self) -> bool {
        !self.state().registry.is_empty()
    }

    /// Lists the messages that are held back.
    #[must_use]
    pub fn held(&self) -> Vec<(AppId, MessageId)> {
        self.state().held.all()
    }

    /// Lists the messages that connected devices are to be given next.
    #[must_use]
    pub fn next_messages(&self) -> BTreeSet<(AppId, MessageId)> {
        let of = |session: &Arc<SessionState>| {
            let app = session.identity().app;
            session.next_messages().into_iter().map(move |message| (app, message))
        };
        self.state().registry.all().iter().flat_map(of).collect()
    }

    /// Ends the sessions of devices that are gone, or may have had another token or other keys since they came: those come back.
    pub async fn check_sessions(&self) -> Result<(), StoreError> {
        let sessions = stream::iter(self.state().registry.all()).map(|session| self.check(session));
        sessions.buffer_unordered(CHECKS_MAX_COUNT).try_collect().await
    }

    /// Waits until devices came of which the other servers are to hear, and takes some.
    pub async fn next_claims(&self) -> Vec<SessionClaim> {
        self.state().claims.next(&self.state().registry).await
    }

    /// Notes claims of which the others could not be told.
    pub fn claim_again(&self, claims: &[SessionClaim]) {
        self.state().claims.note_again(claims);
    }

    /// Lets the others hear of all sessions here, after this server may have missed what they said: who has a later session of a
    /// device answers, and the one here ends.
    pub fn claim_all(&self) {
        self.state().claims.note_all();
    }

    /// Hears that a device came to another server: its session here ends, unless that is the later one.
    pub fn hear_claim(&self, claim: &SessionClaim) {
        let state = self.state();
        let Some(session) = state.registry.get(claim.identity.device) else { return };
        match state.claims.compare(&session, claim) {
            Ordering::Less => session.close(Closed::TakenOver),
            // Its own, of before it joined the others again.
            Ordering::Equal => {}
            // Whoever said so has not heard of it, or missed it.
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
    // Of keys it is not known since when it has them.
    let is_same = device.token_since.plus(CLOCKS_DIFFER_MAX) < session.opened_at() && device.keys.is_none();
    device.listed && device.retired.is_none() && is_same
}
