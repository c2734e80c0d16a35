//! The processing time of a push service, which the gateway here does not take: a stated parameter, spent between the gateway and the app
//! server, in each direction separately.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Limit of delayed pieces of data; the sender waits beyond it.
const PIECES_MAX_COUNT: usize = 1_024;
const PIECE_BYTES: usize = 16 << 10;

/// Delay of a push service in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProviderDelay {
    /// From the gateway to the app server.
    up: Duration,
    /// From the app server to the gateway.
    down: Duration,
}

impl ProviderDelay {
    /// Reads the delay from the factors of a cell; only the level `paper` of the factor `provider` has one.
    pub(super) fn of(factors: &BTreeMap<String, String>) -> anyhow::Result<Option<Self>> {
        if factors.get("provider").is_none_or(|level| level != "paper") {
            return Ok(None);
        }
        let ms = |name: &str| {
            let text = factors.get(name).with_context(|| format!("the factor {name} is missing"))?;
            anyhow::Ok(Duration::from_millis(text.parse()?))
        };
        Ok(Some(Self { up: ms("provider_up_ms")?, down: ms("provider_down_ms")? }))
    }

    /// Listens in front of a port of this machine and forwards data with the delay; returns the new port.
    pub(super) async fn in_front_of(self, bind: IpAddr, port: u16) -> anyhow::Result<u16> {
        let listener = TcpListener::bind(SocketAddr::new(bind, 0)).await?;
        let address = listener.local_addr()?;
        let near = if bind.is_unspecified() { IpAddr::from([127, 0, 0, 1]) } else { bind };
        let target = SocketAddr::new(near, port);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.pass(stream, target));
            }
        });
        Ok(address.port())
    }

    async fn pass(self, app_server: TcpStream, target: SocketAddr) -> io::Result<()> {
        let gateway = TcpStream::connect(target).await?;
        app_server.set_nodelay(true)?;
        gateway.set_nodelay(true)?;
        let ((from_app, to_app), (from_gateway, to_gateway)) =
            (app_server.into_split(), gateway.into_split());
        tokio::try_join!(late(from_gateway, to_app, self.up), late(from_app, to_gateway, self.down))?;
        Ok(())
    }
}

/// Forwards each piece after the delay.
async fn late(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay: Duration,
) -> io::Result<()> {
    let (pieces, mut due) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES_MAX_COUNT);
    let reading = async move {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let count = from.read(&mut buffer).await?;
            let piece = (Instant::now() + delay, buffer[..count].to_vec());
            if count == 0 || pieces.send(piece).await.is_err() {
                return io::Result::Ok(());
            }
        }
    };
    let writing = async move {
        while let Some((instant, piece)) = due.recv().await {
            sleep_until(instant).await;
            to.write_all(&piece).await?;
        }
        to.shutdown().await
    };
    tokio::try_join!(reading, writing).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_what_the_cell_says_at_the_papers_level_and_none_at_others() {
        let delay_of = |provider: &str| {
            let factors = [("provider", provider), ("provider_up_ms", "155"), ("provider_down_ms", "276")];
            let factors = factors.map(|(name, level)| (name.to_owned(), level.to_owned()));
            ProviderDelay::of(&factors.into()).expect("numbers")
        };
        let (up, down) = (Duration::from_millis(155), Duration::from_millis(276));
        assert_eq!((delay_of("paper"), delay_of("none")), (Some(ProviderDelay { up, down }), None));
        let nothing = BTreeMap::from([("provider".to_owned(), "paper".to_owned())]);
        assert!(ProviderDelay::of(&nothing).is_err());
    }

    #[tokio::test]
    async fn what_is_passed_on_comes_whole_and_late_each_way_by_itself() {
        let (up, down) = (Duration::from_millis(20), Duration::from_millis(70));
        let gateway = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let bind = IpAddr::from([127, 0, 0, 1]);
        let behind = gateway.local_addr().expect("an address").port();
        let port = ProviderDelay { up, down }.in_front_of(bind, behind).await.expect("a port");
        let mut app_server = TcpStream::connect((bind, port)).await.expect("connected");
        let (mut near, _) = gateway.accept().await.expect("connected");
        let began = Instant::now();
        app_server.write_all(b"down").await.expect("sent");
        let mut heard = [0; 4];
        near.read_exact(&mut heard).await.expect("heard");
        let took = began.elapsed();
        assert!(&heard == b"down" && took >= down, "{took:?}");
        let began = Instant::now();
        near.write_all(b"up").await.expect("sent");
        drop(near);
        let mut rest = Vec::new();
        app_server.read_to_end(&mut rest).await.expect("heard");
        assert!(rest == b"up" && began.elapsed() >= up, "{rest:?}");
    }
}
