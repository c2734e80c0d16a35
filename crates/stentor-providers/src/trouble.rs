//! Errors between an adapter and its push service, in messages that name the host.

use reqwest::Url;
use stentor_core::ports::provider::ProviderTrouble;
use stentor_http2::{Client, Endpoint, Fault};

/// Prefix of the TLS library's message about a rejected certificate.
const REFUSED_CERTIFICATE: &str = "invalid peer certificate: ";

/// The address of an endpoint.
pub(crate) fn place(endpoint: &Endpoint) -> String {
    format!("{}:{}", endpoint.host, endpoint.port)
}

/// The address in a URL.
pub(crate) fn place_of(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// Describes a failure to reach a host.
pub(crate) fn trouble(host: &str, what: &str, cause: &str) -> ProviderTrouble {
    // Libraries prepend their own text.
    let refused = cause.rfind(REFUSED_CERTIFICATE).map(|at| &cause[at + REFUSED_CERTIFICATE.len()..]);
    let cause = match refused {
        Some(refused) => format!("certificate of {host}: {refused}"),
        None => format!("{what} {host}: {cause}"),
    };
    ProviderTrouble { host: host.to_owned(), cause }
}

/// Describes the failure to open a connection.
pub(crate) fn of_fault(host: &str, fault: &Fault) -> ProviderTrouble {
    trouble(host, "push service", &fault.to_string())
}

/// Tries to connect.
pub(crate) async fn check(host: &str, client: &Client) -> Result<(), ProviderTrouble> {
    client.check().await.map_err(|fault| of_fault(host, &fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_certificate_is_told_with_its_host_whatever_words_are_around_it() {
        let message = |cause: &str| trouble("localhost:8443", "token endpoint", cause).to_string();
        let chain = "error sending request: client error (Connect): invalid peer certificate: UnknownIssuer";
        assert_eq!(message(chain), "certificate of localhost:8443: UnknownIssuer");
        assert_eq!(message("HTTP 503"), "token endpoint localhost:8443: HTTP 503");
        let fault = Fault::Tls("invalid peer certificate: Expired".into());
        assert_eq!(of_fault("a:1", &fault).to_string(), "certificate of a:1: Expired");
    }
}
