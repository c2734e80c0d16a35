//! Adapters to the push services, in one folder each with the same modules: `credential`, `auth`, `payload`, `errors`.
//!
//! A folder describes itself in a [`Descriptor`]; a new one is a line of [`stentor_core::push_services`].
//!
//! Vendor terms and HTTP statuses stay in this crate: its interface only has [`Outcome`](stentor_core::outcome::Outcome)s. No adapter
//! retries a request that a push service may have processed.
#![forbid(unsafe_code)]

mod attempt;
mod credential;
pub mod descriptor;
mod header_text;
mod hosts;
mod json;
pub mod multicast;
pub mod oauth;
mod outbound;
mod preview;
mod registry;
mod replies;
pub mod retry_after;
pub mod schema;
mod subset;
mod trouble;
mod vendor_http;

use std::sync::Arc;

use stentor_core::outbound::Refused;
use stentor_core::ports::clock::Clock;
pub use stentor_http2::Limits;

pub use self::attempt::Attempt;
pub use self::descriptor::Descriptor;
pub use self::outbound::Outbound;
pub use self::preview::RequestPreview;
pub use self::registry::{all, descriptor, open, refused_host, shown, usual_provider};

/// The environment of an adapter.
#[derive(Clone)]
pub struct Setup {
    /// The clock, for keys that expire.
    pub clock: Arc<dyn Clock>,
    /// Limits of its connections.
    pub limits: Limits,
    /// The outbound policy for its connections.
    pub outbound: Outbound,
}

/// A host in a credential to which connections are not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHost {
    /// Path of the field that names it.
    pub field: String,
    /// The reason of the refusal.
    pub refused: Refused,
}

macro_rules! adapters {
    ($($folder:ident: $kind:ident = $code:literal, $word:literal, $about:literal;)*) => {
        $(pub mod $folder;)*

        /// Every adapter, in the order of their codes.
        const ADAPTERS: &[&Descriptor] = &[$(&$folder::DESCRIPTOR),*];
    };
}
stentor_core::push_services!(adapters);

const _: () = assert!(registry::is_complete(), "one adapter for each kind, in the order of their codes");
