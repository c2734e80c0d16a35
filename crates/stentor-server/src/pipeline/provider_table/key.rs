//! The key of everything that belongs to a credential.

use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;

/// One app at one provider: the key of a credential and its breaker.
pub(crate) type ProviderKey = (AppId, ProviderKind);
