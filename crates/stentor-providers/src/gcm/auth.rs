//! The header with the API key.

use http::HeaderValue;
use secrecy::ExposeSecret;
use stentor_core::ports::provider::CredentialError;

use super::credential::GcmCredential;
use crate::credential::invalid;

/// Returns the value of the header.
pub(super) fn header(credential: &GcmCredential) -> Result<HeaderValue, CredentialError> {
    let mut value = HeaderValue::try_from(format!("key={}", credential.api_key.expose_secret()))
        .map_err(|_| invalid("api_key", "must be one line of text"))?;
    value.set_sensitive(true);
    Ok(value)
}
