//! The bytes of a connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Duration;
use tokio_util::sync::CancellationToken;

use super::fault::MqttEnd;
use super::frames::MqttReader;
use super::limits::{MqttLimits, READ_BYTES};
use super::request::MqttRequest;
use super::writer::MqttWriter;

/// One connection with what was read and what is to be written; both are empty while it is idle.
pub(super) struct MqttLink<S> {
    stream: S,
    pub(super) reader: MqttReader,
    pub(super) writer: MqttWriter,
    pub(super) stopping: CancellationToken,
    write_timeout: Duration,
}

impl<S: AsyncRead + AsyncWrite + Unpin> MqttLink<S> {
    pub(super) fn new(stream: S, limits: &MqttLimits, stopping: CancellationToken) -> Self {
        let reader = MqttReader::new(limits.login_packet_max_bytes);
        let write_timeout = limits.write_timeout;
        Self { stream, reader, writer: MqttWriter::new(), stopping, write_timeout }
    }

    /// Waits for bytes and hands them to the reader. It may be cut off: what came is in the reader.
    pub(super) async fn fill(&mut self) -> Result<(), MqttEnd> {
        let (stream, reader) = (&mut self.stream, &mut self.reader);
        let count = poll_fn(|context| {
            // On the stack, between two polls there is no buffer.
            let mut space = [0_u8; READ_BYTES];
            let mut space = ReadBuf::new(&mut space);
            match Pin::new(&mut *stream).poll_read(context, &mut space) {
                Poll::Ready(Ok(())) => {
                    reader.take(space.filled());
                    Poll::Ready(Ok(space.filled().len()))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending => Poll::Pending,
            }
        });
        match count.await {
            Ok(0) | Err(_) => Err(MqttEnd::Gone),
            Ok(_) => Ok(()),
        }
    }

    /// Waits for the next request.
    pub(super) async fn request(&mut self) -> Result<MqttRequest, MqttEnd> {
        loop {
            if let Some(request) = self.reader.next()? {
                return Ok(request);
            }
            self.fill().await?;
        }
    }

    /// Writes what was gathered. Whoever takes nothing for too long is cut off.
    pub(super) async fn flush(&mut self) -> Result<(), MqttEnd> {
        if self.writer.waiting_bytes() == 0 {
            return Ok(());
        }
        let bytes = self.writer.take();
        let stream = &mut self.stream;
        let writing = async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        };
        tokio::select! {
            written = tokio::time::timeout(self.write_timeout, writing) => {
                written.map_err(|_| MqttEnd::Gone)?.map_err(|_| MqttEnd::Gone)
            }
            // A packet may have been written in part: no word of farewell could be read behind it.
            () = self.stopping.cancelled() => Err(MqttEnd::Gone),
        }
    }

    /// Writes the last words and closes; whoever does not listen is left.
    pub(super) async fn close(mut self) {
        let bytes = self.writer.take();
        let stream = &mut self.stream;
        let closing = async {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        };
        let _gone_or_slow = tokio::time::timeout(self.write_timeout, closing).await;
    }
}
