//! Three nats-servers that keep one stream. They may be killed or cut off from each other, and the stream may be deleted.

use super::network::{ClusterHost, ClusterNetwork};
use anyhow::{Context, ensure};
use serde_json::Value;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stentor_stage::child_process::ChildProcess;
use stentor_stage::nats;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

/// Number of servers: two of them are a quorum without the third.
pub(crate) const SERVERS_COUNT: usize = 3;
/// The stream of an installation, by its default name.
const STREAM: &str = "stentor";
const START_LIMIT: Duration = Duration::from_secs(20);
const REPLY_LIMIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time in which the servers must be in sync again, and the interval of the queries.
const WHOLE_LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest time since a leader's last contact with a replica, which happens once a second.
const CONTACT_WITHIN: Duration = Duration::from_secs(3);
/// Subject of replies; this process sends one request at a time.
const INBOX: &str = "stage.reply";

/// The servers.
pub(crate) struct QueueServers {
    servers: Vec<QueueServer>,
}

struct QueueServer {
    host: ClusterHost,
    /// Addresses for clients and for the other servers.
    client: SocketAddr,
    route: SocketAddr,
    folder: PathBuf,
    process: Option<ChildProcess>,
}

impl QueueServers {
    /// Starts them in a folder.
    pub(crate) fn start(folder: &Path, network: &mut ClusterNetwork) -> anyhow::Result<Self> {
        let mut servers = Vec::new();
        for place in 1..=SERVERS_COUNT {
            let host = network.add_host()?;
            let address = || anyhow::Ok(SocketAddr::new(host.ip.into(), host.free_port()?));
            let (client, route) = (address()?, address()?);
            let folder = folder.join(format!("queue-{place}"));
            std::fs::create_dir_all(&folder)?;
            servers.push(QueueServer { host, client, route, folder, process: None });
        }
        let mut servers = Self { servers };
        servers.start_again()?;
        Ok(servers)
    }

    /// Returns the URL with all servers.
    pub(crate) fn url(&self) -> String {
        let all: Vec<_> = self.servers.iter().map(|server| server.client.to_string()).collect();
        format!("nats://{}", all.join(","))
    }

    /// Host of a server, by its index modulo the number of servers.
    pub(crate) fn host(&self, place: usize) -> &ClusterHost {
        &self.servers[place % SERVERS_COUNT].host
    }

    /// Returns the index of the leader of the stream; 0 if there is none.
    pub(crate) async fn leader(&self) -> usize {
        let stream_info = self.ask(&format!("$JS.API.STREAM.INFO.{STREAM}")).await;
        let leader =
            stream_info.ok().and_then(|info| info["cluster"]["leader"].as_str()?.parse::<usize>().ok());
        leader.filter(|leader| *leader < SERVERS_COUNT).unwrap_or(0)
    }

    /// Waits until the stream has a leader, and both other servers have reported to it that they are in sync.
    pub(crate) async fn until_whole(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let stream_info = self.ask(&format!("$JS.API.STREAM.INFO.{STREAM}")).await;
            if stream_info.as_ref().is_ok_and(is_whole) {
                return Ok(());
            }
            let sentence =
                format!("the nats-servers are not together again after {WHOLE_LIMIT:?}: {stream_info:?}");
            ensure!(begun.elapsed() < WHOLE_LIMIT, sentence);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Deletes the stream with its contents.
    pub(crate) async fn delete_stream(&self) -> anyhow::Result<()> {
        let response = self.ask(&format!("$JS.API.STREAM.DELETE.{STREAM}")).await?;
        ensure!(response["success"] == true, "the stream cannot be deleted: {response}");
        Ok(())
    }

    /// Kills one server.
    pub(crate) fn kill(&mut self, place: usize) {
        if let Some(process) = self.servers[place % SERVERS_COUNT].process.take() {
            process.kill();
        }
    }

    /// Kills all servers, and removes all their data.
    pub(crate) fn wipe(&mut self) -> anyhow::Result<()> {
        for place in 0..SERVERS_COUNT {
            self.kill(place);
        }
        for server in &self.servers {
            let directory = server.store();
            if directory.exists() {
                std::fs::remove_dir_all(directory)?;
            }
        }
        Ok(())
    }

    /// Starts the servers that do not run.
    pub(crate) fn start_again(&mut self) -> anyhow::Result<()> {
        let routes: Vec<_> = self.servers.iter().map(|server| format!("nats://{}", server.route)).collect();
        for place in 0..SERVERS_COUNT {
            if self.servers[place].process.is_none() {
                self.servers[place].launch(place, &routes.join(","))?;
            }
        }
        self.servers.iter_mut().try_for_each(QueueServer::until_listening)
    }

    /// Fails if a server has ended by itself.
    pub(crate) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.servers
            .iter_mut()
            .filter_map(|server| server.process.as_mut())
            .try_for_each(ChildProcess::check_alive)
    }

    /// Sends a request to the first server that answers.
    async fn ask(&self, subject: &str) -> anyhow::Result<Value> {
        let mut last = Err(anyhow::anyhow!("there is no server"));
        for server in &self.servers {
            last = match tokio::time::timeout(REPLY_LIMIT, ask(server.client, subject)).await {
                Ok(response) => response,
                Err(_) => Err(anyhow::anyhow!("{} does not answer", server.client)),
            };
            if last.is_ok() {
                break;
            }
        }
        last
    }
}

impl QueueServer {
    fn store(&self) -> PathBuf {
        self.folder.join("jetstream")
    }

    fn launch(&mut self, place: usize, routes: &str) -> anyhow::Result<()> {
        let mut command = self.host.command(&nats::installed()?);
        command.args(["--name", &place.to_string(), "--addr", &self.client.ip().to_string()]);
        command
            .args(["--port", &self.client.port().to_string(), "--jetstream", "--store_dir"])
            .arg(self.store());
        command.args(["--cluster_name", "stage", "--cluster", &format!("nats://{}", self.route)]);
        // Clients know all servers already.
        command.args(["--routes", routes, "--no_advertise"]);
        self.process = Some(ChildProcess::spawn("nats-server", command, &self.folder.join("log"))?);
        Ok(())
    }

    fn until_listening(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while TcpStream::connect(self.client).is_err() {
            let process = self.process.as_mut().context("the nats-server was not started")?;
            process.check_alive()?;
            ensure!(started.elapsed() < START_LIMIT, "nats-server does not answer: {}", process.log_end());
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// Returns true if a stream has a leader, and all replicas have just reported to it that they are in sync.
fn is_whole(stream_info: &Value) -> bool {
    let cluster = &stream_info["cluster"];
    let is_current = |replica: &Value| {
        let heard = replica["active"].as_u64().map(Duration::from_nanos);
        replica["current"] == true
            && replica["offline"] != true
            && heard.is_some_and(|heard| heard < CONTACT_WITHIN)
    };
    let others = cluster["replicas"].as_array().map(Vec::as_slice).unwrap_or_default();
    cluster["leader"].is_string() && others.len() + 1 == SERVERS_COUNT && others.iter().all(is_current)
}

/// Sends a request to one server over its text protocol, and waits for the reply.
async fn ask(server: SocketAddr, subject: &str) -> anyhow::Result<Value> {
    let mut stream = BufReader::new(tokio::net::TcpStream::connect(server).await?);
    let request =
        format!("CONNECT {{\"verbose\":false}}\r\nSUB {INBOX} 1\r\nPUB {subject} {INBOX} 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    loop {
        line.clear();
        ensure!(stream.read_line(&mut line).await? > 0, "{server} closed the connection");
        if line.starts_with("PING") {
            stream.write_all(b"PONG\r\n").await?;
        } else if let Some(bytes) = line.strip_prefix("MSG ") {
            let length = bytes.split_whitespace().last().and_then(|length| length.parse().ok());
            let mut body = vec![0; length.context("a message has no length")?];
            stream.read_exact(&mut body).await?;
            return Ok(serde_json::from_slice(&body)?);
        } else if line.starts_with("-ERR") {
            anyhow::bail!("{server} says {}", line.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stream_is_whole_when_its_leader_has_just_heard_from_both_others_that_they_have_all() {
        let stream_info = |second: Value| {
            let first = json!({"name": "1", "current": true, "active": 400_000_000});
            json!({"cluster": {"leader": "0", "replicas": [first, second]}})
        };
        assert!(is_whole(&stream_info(json!({"name": "2", "current": true, "active": 2_900_000_000_u64}))));
        for wrong in [
            json!({"name": "2", "current": true, "active": 3_100_000_000_u64}),
            json!({"name": "2", "current": false, "active": 400_000_000}),
            json!({"name": "2", "current": true, "offline": true, "active": 400_000_000}),
        ] {
            assert!(!is_whole(&stream_info(wrong.clone())), "{wrong}");
        }
        let mut leaderless = stream_info(json!({"name": "2", "current": true, "active": 400_000_000}));
        leaderless["cluster"]["leader"] = Value::Null;
        assert!(!is_whole(&leaderless));
        assert!(!is_whole(&json!({"error": {"code": 404}})));
    }
}
