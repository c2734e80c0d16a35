//! The server itself, run in this process, so that its processor time and memory are counted.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use stentor_node::config;
use stentor_stage::client::{ApiClient, Key};
use tokio::sync::mpsc;

/// The root key of a server that lives for one fork: both halves have to know it, and no other process can reach the server.
pub(crate) const ROOT_KEY: &str = "sk_aLaboratoryKeyThatIsKnownToBothHalvesOfAFor";

/// Addresses of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedAddresses {
    /// The API.
    pub(crate) api: SocketAddr,
    /// The raw socket, if it was requested.
    pub(crate) socket: Option<SocketAddr>,
}

/// Runs the server with its API at this address, and returns the actual address.
pub(crate) async fn serve(directory: &Path, bind: SocketAddr) -> anyhow::Result<SocketAddr> {
    Ok(start(directory, bind, None, "").await?.api)
}

/// Runs the server with its raw socket at this address, and its API at any port beside it.
pub(crate) async fn serve_socket(directory: &Path, bind: SocketAddr) -> anyhow::Result<ServedAddresses> {
    start(directory, SocketAddr::new(bind.ip(), 0), Some(bind), "").await
}

/// Runs the server with its API at this address and with further tables of settings, and returns the actual address.
pub(crate) async fn serve_with(
    directory: &Path,
    bind: SocketAddr,
    further: &str,
) -> anyhow::Result<SocketAddr> {
    Ok(start(directory, bind, None, further).await?.api)
}

/// Returns the data directory of a server in a directory.
pub(crate) fn data_dir(directory: &Path) -> PathBuf {
    directory.join("data")
}

async fn start(
    directory: &Path,
    api: SocketAddr,
    socket: Option<SocketAddr>,
    further: &str,
) -> anyhow::Result<ServedAddresses> {
    let file = directory.join("stentor.toml");
    let data_dir = data_dir(directory).display().to_string();
    let socket = socket.map(|socket| format!("socket_listen = \"{socket}\"\n")).unwrap_or_default();
    let settings = format!(
        "data_dir = {data_dir:?}\n[api]\nlisten = \"{api}\"\nroot_key = \"{ROOT_KEY}\"\n{socket}{further}"
    );
    stentor_stage::files::publish(&file, &settings)?;
    let server = stentor_node::build(config::load(Some(&file))?).await?;
    let addresses = ServedAddresses { api: server.local_addr(), socket: server.socket_addr() };
    let (sender, reload) = mpsc::channel(1);
    tokio::spawn(async move {
        // The server runs as long as this process, and its settings are never reloaded.
        let _never = sender;
        let _ = server.run(std::future::pending(), reload).await;
    });
    Ok(addresses)
}

/// Returns a client of the API with the root key.
pub(crate) fn root(address: SocketAddr) -> anyhow::Result<ApiClient> {
    ApiClient::new(&format!("http://{address}"), Some(Key(ROOT_KEY.to_owned())), None)
}

/// Returns any port of the loopback address.
pub(crate) const fn anywhere() -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0)
}
