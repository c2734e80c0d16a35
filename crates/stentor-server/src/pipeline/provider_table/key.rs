//! The key of everything that belongs to a credential.

use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;

/// One app at one provider: what a credential and a breaker belong to.
pub(crate) type ProviderKey = (AppId, ProviderKind);
