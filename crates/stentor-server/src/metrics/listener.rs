//! Metrics of the API's listener.

use prometheus_client::encoding::DescriptorEncoder;
use stentor_core::time::Timestamp;

use super::{Labels, Written, counters, gauges};
use crate::listen::ConnectionCounts;
use crate::service::Service;
use crate::status::ServerStatus;

/// A snapshot of the listener.
#[derive(Debug)]
pub(super) struct ListenerFacts {
    certificate: Option<CertificateFacts>,
    connections: ConnectionCounts,
    requests: usize,
    nameless_requests: usize,
    replies_bytes: usize,
    bodies_bytes: usize,
    imports: usize,
    socket_connections: usize,
    socket_requests: u64,
}

#[derive(Debug)]
struct CertificateFacts {
    seconds_left: f64,
    replaced: u64,
    refusals: u64,
}

impl ListenerFacts {
    /// Takes the snapshot.
    pub(super) fn of(service: &Service, server_status: &ServerStatus, now: Timestamp) -> Self {
        let certificate = server_status.listener.certificate.as_ref().map(|certificate| CertificateFacts {
            seconds_left: certificate.seconds_left(now),
            replaced: certificate.replaced(),
            refusals: certificate.refusals(),
        });
        Self {
            certificate,
            connections: server_status.listener.connections.counts(),
            requests: server_status.listener.requests.taken(),
            nameless_requests: server_status.listener.requests.taken_by_nameless(),
            bodies_bytes: server_status.listener.bodies.taken(),
            replies_bytes: server_status.listener.replies.taken(),
            imports: service.imports_at_work(),
            socket_connections: server_status.listener.socket.connections(),
            socket_requests: server_status.listener.socket.requests(),
        }
    }

    /// Writes its metrics; without TLS the certificate is omitted.
    pub(super) fn encode(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        let counts = [
            ("connections_open", "Connections to the API", self.connections.open),
            (
                "requests_at_work",
                "Requests with a key that are worked on",
                self.requests.saturating_sub(self.nameless_requests),
            ),
            (
                "nameless_requests_at_work",
                "Requests without a key that are worked on",
                self.nameless_requests,
            ),
            ("request_bodies_bytes", "Bytes of the bodies of requests", self.bodies_bytes),
            ("replies_unread_bytes", "Bytes of replies that are not taken yet", self.replies_bytes),
            ("imports_at_work", "Imports that run", self.imports),
            ("socket_connections_open", "Connections to the raw socket", self.socket_connections),
        ];
        for (name, help, count) in counts {
            gauges(to, name, help, [(Labels::new(), count as f64)])?;
        }
        let requests = [(Labels::new(), self.socket_requests)];
        counters(to, "socket_requests", "Requests over the raw socket", requests)?;
        let closed = [
            ("address_limit", self.connections.refused),
            ("made_room", self.connections.replaced),
            ("idle", self.connections.idle_closed),
        ]
        .map(|(reason, count)| (vec![("reason", reason.to_owned())], count));
        counters(to, "connections_closed", "Connections to the API closed by the server", closed)?;
        self.certificate.as_ref().map_or(Ok(()), |certificate| certificate.encode(to))
    }
}

impl CertificateFacts {
    fn encode(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        let help = "Time until the certificate of the API ends; below zero when it has ended";
        gauges(to, "tls_certificate_left_seconds", help, [(Labels::new(), self.seconds_left)])?;
        let help = "Certificates of the API that took the place of another";
        counters(to, "tls_certificates_replaced", help, [(Labels::new(), self.replaced)])?;
        let help = "New certificates of the API that could not be used";
        counters(to, "tls_certificates_refused", help, [(Labels::new(), self.refusals)])
    }
}
