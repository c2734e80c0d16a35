//! The builder of providers, which the crate's adapters implement.

use std::sync::Arc;

use stentor_core::app::Credential;
use stentor_core::error::Invalid;
use stentor_core::ports::provider::Provider;

/// Builds providers from credentials.
pub trait ProviderFactory: Send + Sync + 'static {
    /// Reads the credential and gives a provider that has not connected yet; the error names the field.
    fn build(&self, credential: &Credential) -> Result<Arc<dyn Provider>, Invalid>;

    /// Returns how many messages per minute the credential allows; `None` for as many as the push service takes.
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
