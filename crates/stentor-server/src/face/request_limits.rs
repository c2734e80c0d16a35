//! The limits of all routes: concurrent requests, their memory, their time and their rate.

use std::sync::Arc;
use std::time::Duration;

use crate::owner_rates::OwnerRates;
use crate::shares::Shares;

/// Maximum size of the reply to one request, with any number of operations; also the maximum size of a page.
pub(crate) use crate::contract::REPLY_MAX_BYTES;

/// The limits of concurrent requests and of their time.
#[derive(Debug)]
pub struct RequestLimits {
    /// Places for requests.
    pub places: Arc<Shares>,
    /// Places for requests with open-ended responses.
    pub lasting: Arc<Shares>,
    /// Places for requests with a body that is still arriving.
    pub arriving: Arc<Shares>,
    /// Bytes of the bodies of requests.
    pub bodies: Arc<Shares>,
    /// Bytes of replies that the clients have not read yet.
    pub replies: Arc<Shares>,
    /// Places for watches of a caller's own objects.
    pub watches: Arc<Shares>,
    /// Places for watches of the server's health, without a key.
    pub health_watches: Arc<Shares>,
    /// Request rates by owner.
    pub rates: OwnerRates,
    /// Maximum time until a body is complete.
    pub body_timeout: Duration,
    /// Maximum time of a request.
    pub timeout: Duration,
}
