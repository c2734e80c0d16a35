//! The builder of providers, which the crate's adapters implement.

use std::sync::Arc;

use stentor_core::app::Credential;
use stentor_core::error::Invalid;
use stentor_core::ports::provider::Provider;

/// Builds providers from credentials.
pub trait ProviderFactory: Send + Sync + 'static {
    /// Parses the credential and builds a provider, which is not connected yet. An error names the invalid field.
    fn build(&self, credential: &Credential) -> Result<Arc<dyn Provider>, Invalid>;

    /// Returns the messages per minute that the credential allows; `None` for no limit.
    fn quota(&self, credential: &Credential) -> Option<u32> {
        let _nothing_is_said = credential;
        None
    }
}

impl<F> ProviderFactory for F
where
    F: Fn(&Credential) -> Result<Arc<dyn Provider>, Invalid> + Send + Sync + 'static,
{
    fn build(&self, credential: &Credential) -> Result<Arc<dyn Provider>, Invalid> {
        self(credential)
    }
}
