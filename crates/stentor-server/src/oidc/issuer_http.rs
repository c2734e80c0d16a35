//! Requests to the issuer, bounded in time and bytes, and to permitted addresses only.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use stentor_providers::Outbound;

use super::refusal::{LoginRefusal, RefusalCode};

/// Longest time of a request, its answer included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer.
const ANSWER_MAX_BYTES: usize = 256 * 1_024;

/// A client that connects to permitted addresses only, uses no proxy and follows no redirects.
pub(super) struct IssuerHttp {
    client: reqwest::Client,
    outbound: Outbound,
}

impl IssuerHttp {
    pub(super) fn new(outbound: Outbound) -> Result<Self, String> {
        let client = reqwest::Client::builder()
            .timeout(REQUEST_TIMEOUT)
            .redirect(Policy::none())
            .no_proxy()
            .user_agent("stentor")
            .dns_resolver(Arc::new(outbound.clone()))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { client, outbound })
    }

    /// Reads a document.
    pub(super) async fn get<T: DeserializeOwned>(&self, url: &Url) -> Result<T, LoginRefusal> {
        let response = self.answer(url, self.client.get(url.clone())).await?;
        if !response.status().is_success() {
            return Err(LoginRefusal::unavailable("the issuer answers a read with another status than 200"));
        }
        decoded(response).await
    }

    /// Posts a form, with HTTP Basic if a name and a secret are given.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        basic: Option<(&str, &str)>,
    ) -> Result<T, LoginRefusal> {
        let request = self.client.post(url.clone()).form(form);
        let request = match basic {
            // RFC 6749, section 2.3.1: both are encoded like the fields of a form first.
            Some((name, secret)) => {
                request.basic_auth(form_encoded(url.clone(), name), Some(form_encoded(url.clone(), secret)))
            }
            None => request,
        };
        let response = self.answer(url, request).await?;
        match response.status() {
            status if status.is_success() => decoded(response).await,
            status if status.is_client_error() => Err(LoginRefusal::new(
                RefusalCode::IssuerRefused,
                "the issuer refuses the code or the client",
            )),
            _ => Err(LoginRefusal::unavailable("the issuer answers the code with an error of its own")),
        }
    }

    async fn answer(&self, url: &Url, request: RequestBuilder) -> Result<Response, LoginRefusal> {
        // An address is never resolved, so that the resolver cannot refuse it.
        let host = url.host_str().unwrap_or_default();
        self.outbound
            .check_host(host)
            .map_err(|_| LoginRefusal::unavailable("an address of the issuer is not permitted"))?;
        request.send().await.map_err(|error| failure_of(&error))
    }
}

async fn decoded<T: DeserializeOwned>(mut response: Response) -> Result<T, LoginRefusal> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| failure_of(&error))? {
        if body.len() + piece.len() > ANSWER_MAX_BYTES {
            return Err(LoginRefusal::unavailable("the issuer's answer is too long"));
        }
        body.extend_from_slice(&piece);
    }
    serde_json::from_slice(&body).map_err(|_| LoginRefusal::unavailable("the issuer's answer cannot be read"))
}

fn failure_of(error: &reqwest::Error) -> LoginRefusal {
    LoginRefusal::unavailable(match error {
        error if error.is_timeout() => "the issuer does not answer in time",
        error if error.is_connect() => "the issuer cannot be reached",
        _ => "the request to the issuer failed",
    })
}

/// Encodes a text like a field of a form; any address serves as the form.
fn form_encoded(mut form: Url, text: &str) -> String {
    form.query_pairs_mut().clear().append_key_only(text);
    form.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_encoded_like_a_field_of_a_form() {
        let form = Url::parse("https://id.example.org/token?a=b").expect("an address");
        assert_eq!(form_encoded(form, "a b:c%&=+ä"), "a+b%3Ac%25%26%3D%2B%C3%A4");
    }
}
