//! Lookup of adapters by their kind.

use std::sync::Arc;

use stentor_core::device::{Platform, ProviderKind};
use stentor_core::outbound::OutboundPolicy;
use stentor_core::ports::provider::{CredentialError, Provider};

use crate::schema::Shown;
use crate::{ADAPTERS, Descriptor, RefusedHost, Setup, outbound};

/// Returns true if each kind has its adapter, at the same place of both tables.
pub(crate) const fn is_complete() -> bool {
    let mut place = 0;
    while place < ADAPTERS.len() && place < ProviderKind::ALL.len() {
        if ADAPTERS[place].kind.code() != ProviderKind::ALL[place].code() {
            return false;
        }
        place += 1;
    }
    ADAPTERS.len() == ProviderKind::ALL.len()
}

/// Lists all adapters, in the order of their codes.
pub fn all() -> impl Iterator<Item = &'static Descriptor> {
    ADAPTERS.iter().copied()
}

/// Lists the parts of credentials that may be shown, each name once: a part has the same meaning at every push service.
pub fn shown() -> impl Iterator<Item = &'static Shown> {
    let mut named = Vec::new();
    let is_new = move |shown: &&Shown| {
        let is_new = !named.contains(&shown.name);
        named.push(shown.name);
        is_new
    };
    all().flat_map(|adapter| adapter.credential.shown).filter(is_new)
}

/// Returns the adapter of a kind.
#[must_use]
pub fn descriptor(kind: ProviderKind) -> &'static Descriptor {
    let place = ProviderKind::ALL.iter().position(|known| *known == kind);
    ADAPTERS[place.unwrap_or_default()]
}

/// Returns the provider that reaches a platform's devices when their registration names none.
#[must_use]
pub fn usual_provider(platform: Platform) -> Option<ProviderKind> {
    all().find(|adapter| adapter.platforms.contains(&platform)).map(|adapter| adapter.kind)
}

/// Builds the adapter for a credential's JSON; connects to nothing yet.
pub fn open(kind: ProviderKind, secret: &str, setup: &Setup) -> Result<Arc<dyn Provider>, CredentialError> {
    (descriptor(kind).open)(secret, setup)
}

/// Finds a host in a credential to which connections are not allowed, as far as this is known without a lookup. Fails if the credential
/// itself is invalid.
pub fn refused_host(
    kind: ProviderKind,
    secret: &str,
    policy: &OutboundPolicy,
) -> Result<Option<RefusedHost>, CredentialError> {
    let hosts = (descriptor(kind).hosts)(secret)?;
    let refused = hosts.into_iter().find_map(|(field, host)| {
        let refused = outbound::check_host(policy, &host).err()?;
        Some(RefusedHost { field, refused })
    });
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_leads_to_its_adapter() {
        for kind in ProviderKind::ALL {
            assert_eq!(descriptor(*kind).kind, *kind);
        }
    }

    #[test]
    fn a_platform_has_one_usual_provider_at_most_and_a_field_of_a_message_one_meaning() {
        for platform in Platform::ALL {
            assert!(all().filter(|adapter| adapter.platforms.contains(platform)).count() <= 1);
        }
        let mut fields: Vec<_> = all().filter_map(Descriptor::override_field).collect();
        fields.sort_unstable();
        fields.dedup();
        assert_eq!(fields.len(), all().filter(|adapter| adapter.overrides.is_some()).count());
    }
}
