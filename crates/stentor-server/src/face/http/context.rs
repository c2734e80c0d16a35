//! The head of a request, as all faces know it.

use stentor_core::id::AppId;
use stentor_core::name::IdempotencyKey;

use super::request_permit::RequestPermit;
use crate::contract::{Identity, Origin};

/// Context of a request outside its record.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// The authenticated key of a request.
    pub identity: Identity,
    /// App named outside the record.
    pub app: Option<AppId>,
    /// Idempotency key outside the record.
    pub key: Option<IdempotencyKey>,
    /// Origin of the request.
    pub origin: Origin,
    /// Permit for the resources of the request.
    pub(in crate::face) permit: RequestPermit,
}
