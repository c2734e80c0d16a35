//! An HTTP client for the few requests to a vendor that are no pushes.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use stentor_core::ports::provider::CredentialError;

use crate::credential::unusable;
use crate::outbound::Outbound;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Builds a client that connects to permitted addresses only: it uses no proxy and follows no redirects.
pub(crate) fn client(ca_pem: Option<&[u8]>, outbound: &Outbound) -> Result<reqwest::Client, CredentialError> {
    let mut builder = reqwest::Client::builder()
        .timeout(REQUEST_TIMEOUT)
        .redirect(Policy::none())
        .no_proxy()
        .dns_resolver(Arc::new(outbound.clone()));
    if let Some(pem) = ca_pem {
        let roots = reqwest::Certificate::from_pem_bundle(pem)
            .map_err(|_| unusable("ca_pem", "must be certificates in PEM"))?;
        builder = builder.tls_certs_only(roots);
    }
    builder.build().map_err(|cause| unusable("ca_pem", &cause.to_string()))
}

/// Reads a body as far as it fits into `max_bytes`.
pub(crate) async fn read(mut response: reqwest::Response, max_bytes: usize) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        let room = max_bytes - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if body.len() == max_bytes {
            break;
        }
    }
    Ok(body)
}
