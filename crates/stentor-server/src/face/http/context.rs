//! The head of a request, as all faces know it.

use stentor_core::id::AppId;
use stentor_core::name::IdempotencyKey;

use super::request_permit::RequestPermit;
use crate::contract::{Identity, Origin};

/// What a face knows of a request beside its record.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// Whose key it is.
    pub identity: Identity,
    /// The app that is named outside the record.
    pub app: Option<AppId>,
    /// The idempotency key that stands outside the record.
    pub key: Option<IdempotencyKey>,
    /// Where it comes from.
    pub origin: Origin,
    /// What it may hold.
    pub(in crate::face) permit: RequestPermit,
}
