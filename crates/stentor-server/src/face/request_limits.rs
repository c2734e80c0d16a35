//! The limits of all routes: requests at once, their memory, their time and their rate.

use std::sync::Arc;
use std::time::Duration;

use crate::owner_rates::OwnerRates;
use crate::shares::Shares;

/// What the reply to one request may take, however many operations are in it; a page of a list ends there.
pub(crate) use crate::contract::REPLY_MAX_BYTES;

/// The limits of requests at once, and of their time.
#[derive(Debug)]
pub struct RequestLimits {
    /// Places for requests.
    pub places: Arc<Shares>,
    /// Places for requests whose answer lasts as long as there is something to tell.
    pub lasting: Arc<Shares>,
    /// Places for requests whose body is awaited.
    pub arriving: Arc<Shares>,
    /// Bytes of the bodies of requests.
    pub bodies: Arc<Shares>,
    /// Bytes of replies that are not taken yet.
    pub replies: Arc<Shares>,
    /// Places for those who watch something of theirs.
    pub watches: Arc<Shares>,
    /// Places for those who watch the server's health, without a key.
    pub health_watches: Arc<Shares>,
    /// The rate of each owner.
    pub rates: OwnerRates,
    /// Longest time until a body is there.
    pub body_timeout: Duration,
    /// Longest time of a request.
    pub timeout: Duration,
}
