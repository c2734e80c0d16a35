//! A caller of a REST API that does next to nothing itself: one kept connection of HTTP/1.1, one call at a time.

use std::io;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallerError {
    /// No connection.
    #[error("no server answers at {0}: {1}")]
    Connect(String, io::Error),
    /// The connection broke, or what was said is no HTTP.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(#[from] http::Error),
}

/// One caller.
#[derive(Debug)]
pub struct Caller {
    sender: SendRequest<Full<Bytes>>,
    /// What every request says.
    headers: HeaderMap,
}

impl Caller {
    /// Connects to `host:port`, without TLS; `headers` go with every call.
    pub async fn connect(authority: &str, mut headers: HeaderMap) -> Result<Self, CallerError> {
        let refused = |error| CallerError::Connect(authority.to_owned(), error);
        let stream = TcpStream::connect(authority).await.map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        let host = HeaderValue::from_str(authority).map_err(http::Error::from)?;
        headers.insert(header::HOST, host);
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a caller's connection broke");
            }
        });
        Ok(Self { sender, headers })
    }

    /// Makes one call and gives its answer whole.
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), CallerError> {
        let mut request = Request::builder().method(method).uri(path).body(Full::new(body))?;
        request.headers_mut().clone_from(&self.headers);
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok((head.status, body.collect().await?.to_bytes()))
    }
}

#[cfg(test)]
mod tests;
