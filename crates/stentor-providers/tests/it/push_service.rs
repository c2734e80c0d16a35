//! A push service that answers as a test says, over HTTP/1.1.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request that a push service has received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// The answer to a request: a status, further header lines, and a body; `None` keeps silent.
pub(crate) type PushAnswer = Option<(u16, &'static str, String)>;

type Answering = dyn Fn(&Received) -> PushAnswer + Send + Sync;

/// A push service that speaks HTTP/1.1.
pub(crate) struct PushService {
    pub(crate) origin: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl PushService {
    /// Starts it; it answers with a status and further header lines, or keeps silent.
    pub(crate) async fn start(
        answer: impl Fn(&Received) -> Option<(u16, &'static str)> + Send + Sync + 'static,
    ) -> Self {
        let answer =
            move |request: &Received| answer(request).map(|(status, more)| (status, more, String::new()));
        Self::start_with_bodies(answer).await
    }

    /// Starts it; it answers with a body too.
    pub(crate) async fn start_with_bodies(
        answer: impl Fn(&Received) -> PushAnswer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer): (_, Arc<Answering>) = (Arc::clone(&received), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(serve(tcp, Arc::clone(&seen), Arc::clone(&answer)));
            }
        });
        Self { origin, received }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().clone()
    }
}

async fn serve(
    tcp: TcpStream,
    seen: Arc<Mutex<Vec<Received>>>,
    answer: Arc<Answering>,
) -> std::io::Result<()> {
    let mut io = BufReader::new(tcp);
    loop {
        let (mut line, mut headers) = (String::new(), HashMap::new());
        if io.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        loop {
            let mut line = String::new();
            io.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        io.read_exact(&mut body).await?;
        let request = Received { path, headers, body };
        seen.lock().push(request.clone());
        let Some((status, more, text)) = answer(&request) else { return std::future::pending().await };
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n{more}\r\n{text}", text.len());
        io.write_all(head.as_bytes()).await?;
    }
}
