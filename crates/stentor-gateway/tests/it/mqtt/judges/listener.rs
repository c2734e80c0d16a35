//! A listener on this machine.

use std::net::SocketAddr;
use std::time::Duration;

use stentor_gateway::mqtt::{MqttLimits, serve};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::room::Room;

/// Serves every connection, and tells how many have ended.
pub(crate) struct MqttListener {
    address: SocketAddr,
    ends: mpsc::UnboundedReceiver<()>,
    ended: usize,
    _stops: DropGuard,
}

impl MqttListener {
    pub(crate) async fn start(room: &Room) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (tell, ends) = mpsc::unbounded_channel();
        let (gateway, stopping) = (room.gateway.clone(), CancellationToken::new());
        let stops = stopping.clone().drop_guard();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serve(
                    gateway.clone(),
                    stream,
                    stopping.clone(),
                    CancellationToken::new(),
                    MqttLimits::default(),
                );
                let tell = tell.clone();
                tokio::spawn(async move {
                    serving.await;
                    let _nobody_asks = tell.send(());
                });
            }
        });
        Self { address, ends, ended: 0, _stops: stops }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until so many connections have ended.
    pub(crate) async fn ended(&mut self, count: usize) {
        while self.ended < count {
            let end = tokio::time::timeout(Duration::from_secs(60), self.ends.recv());
            end.await.expect("connections end").expect("the listener is there");
            self.ended += 1;
        }
    }
}
