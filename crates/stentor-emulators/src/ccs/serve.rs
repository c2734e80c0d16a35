//! The connection loop of CCS: it moves bytes, timers, faults and queue changes between a socket and a session.

use super::{CcsService, CcsSession};
use crate::faults::{Faults, InjectedFault};
use crate::listener::{ConnectionHandler, HttpIo};
use crate::policy::GoAway;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

const READ_BYTES: usize = 16 * 1024;
/// The write timeout: how long a client may take to read pending output.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

impl ConnectionHandler for CcsService {
    async fn xmpp(self: Arc<Self>, io: impl HttpIo) {
        serve(self, io).await;
    }
}

/// Serves one connection to its end.
async fn serve(service: Arc<CcsService>, io: impl HttpIo) {
    let context = Arc::clone(&service.backend.context);
    let mut faults = context.faults.connect();
    let mut changes = service.upstream.changes();
    let mut released = Box::pin(Faults::released(context.faults.watch()));
    let mut session = CcsSession::new(service, Instant::now());
    let (mut reader, mut writer) = tokio::io::split(io);
    let mut bytes = vec![0; READ_BYTES];
    loop {
        session.send_due(Instant::now());
        // Written before the end is checked: the last output of a session must still be sent.
        if !write_all(&mut writer, &session.take_out()).await || session.is_over() {
            break;
        }
        let due = session.next_due();
        tokio::select! {
            read = reader.read(&mut bytes) => match read {
                Ok(count) if count > 0 => session.receive(&bytes[..count], Instant::now()),
                // A client that closes its side gets no further output.
                _ => break,
            },
            Some(fault) = faults.recv() => {
                if let InjectedFault::Goaway { then, code } = fault {
                    session.drain(&GoAway { then, code, ..GoAway::default() });
                }
            }
            Ok(()) = changes.changed() => {}
            () = &mut released => {
                session.release();
                released = Box::pin(Faults::released(context.faults.watch()));
            }
            () = until(due) => {}
        }
    }
    // Dropped before the socket is closed: the next connection must find the unacknowledged messages.
    drop(session);
    let _ = tokio::time::timeout(WRITE_LIMIT, writer.shutdown()).await;
}

/// Writes everything; false when that cannot be done in time.
async fn write_all(writer: &mut (impl AsyncWriteExt + Unpin), out: &[u8]) -> bool {
    if out.is_empty() {
        return true;
    }
    let written = async {
        writer.write_all(out).await?;
        writer.flush().await
    };
    matches!(tokio::time::timeout(WRITE_LIMIT, written).await, Ok(Ok(())))
}

/// Waits for an instant; without one for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
