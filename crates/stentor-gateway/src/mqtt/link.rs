//! The byte stream of a connection.

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Duration;
use tokio_util::sync::CancellationToken;

use super::fault::MqttEnd;
use super::frames::MqttReader;
use super::limits::{MqttLimits, READ_BYTES};
use super::request::MqttRequest;
use super::writer::MqttWriter;

/// One connection with its input and output, which are both empty while it is idle.
pub(super) struct MqttLink<S> {
    stream: S,
    pub(super) reader: MqttReader,
    pub(super) writer: MqttWriter,
    pub(super) stopping: CancellationToken,
    write_timeout_ms: u32,
}

/// The result of a write without waiting.
enum WrittenNow {
    Whole,
    /// This number of bytes was written; if it is all of them, the flush is still pending.
    Part(usize),
}

impl<S: AsyncRead + AsyncWrite + Unpin> MqttLink<S> {
    pub(super) fn new(stream: S, limits: &MqttLimits, stopping: CancellationToken) -> Self {
        let reader = MqttReader::new(limits.login_packet_max_bytes);
        let write_timeout_ms = u32::try_from(limits.write_timeout.as_millis()).unwrap_or(u32::MAX);
        Self { stream, reader, writer: MqttWriter::new(), stopping, write_timeout_ms }
    }

    /// Waits for bytes and passes them to the reader. The call may be cancelled without losing data.
    pub(super) async fn fill(&mut self) -> Result<(), MqttEnd> {
        poll_fn(|context| self.poll_fill(context)).await
    }

    /// Waits for bytes and passes them to the reader.
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), MqttEnd>> {
        // On the stack, so that there is no buffer between two polls. Not zeroed, because most polls bring little or nothing.
        let mut space = [MaybeUninit::<u8>::uninit(); READ_BYTES];
        let mut space = ReadBuf::uninit(&mut space);
        match Pin::new(&mut self.stream).poll_read(context, &mut space) {
            Poll::Ready(Ok(())) if !space.filled().is_empty() => {
                self.reader.take(space.filled());
                Poll::Ready(Ok(()))
            }
            Poll::Ready(_) => Poll::Ready(Err(MqttEnd::Gone)),
            Poll::Pending => Poll::Pending,
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

    /// Writes the output.
    pub(super) async fn flush(&mut self) -> Result<(), MqttEnd> {
        // Most writes complete at once, and need neither a timer nor memory of their own.
        match poll_fn(|context| Poll::Ready(self.flush_now(context))).await? {
            None => Ok(()),
            Some(rest) => Box::pin(self.write_rest(rest)).await,
        }
    }

    /// Writes the output as far as possible without waiting; returns the rest.
    fn flush_now(&mut self, context: &mut Context<'_>) -> Result<Option<Vec<u8>>, MqttEnd> {
        if self.writer.waiting_bytes() == 0 {
            return Ok(None);
        }
        let mut bytes = self.writer.take();
        Ok(match self.write_now(context, &bytes)? {
            WrittenNow::Whole => None,
            WrittenNow::Part(count) => Some(bytes.split_off(count)),
        })
    }

    /// Writes as many bytes as possible without waiting.
    fn write_now(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Result<WrittenNow, MqttEnd> {
        let mut stream = Pin::new(&mut self.stream);
        match stream.as_mut().poll_write(context, bytes) {
            Poll::Ready(Ok(count)) if count == bytes.len() => match stream.poll_flush(context) {
                Poll::Ready(Ok(())) => Ok(WrittenNow::Whole),
                Poll::Ready(Err(_)) => Err(MqttEnd::Gone),
                Poll::Pending => Ok(WrittenNow::Part(count)),
            },
            Poll::Ready(Ok(0) | Err(_)) => Err(MqttEnd::Gone),
            Poll::Ready(Ok(count)) => Ok(WrittenNow::Part(count)),
            Poll::Pending => Ok(WrittenNow::Part(0)),
        }
    }

    /// Waits until all bytes are written. A device that does not read for too long is disconnected.
    async fn write_rest(&mut self, bytes: Vec<u8>) -> Result<(), MqttEnd> {
        let (timeout, stream) = (self.write_timeout(), &mut self.stream);
        let writing = async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        };
        tokio::select! {
            written = tokio::time::timeout(timeout, writing) => {
                written.map_err(|_| MqttEnd::Gone)?.map_err(|_| MqttEnd::Gone)
            }
            // A packet may have been written in part: no final packet could be parsed after it.
            () = self.stopping.cancelled() => Err(MqttEnd::Gone),
        }
    }

    /// Writes the final packets and closes, within the write timeout.
    pub(super) async fn close(mut self) {
        let bytes = self.writer.take();
        let (timeout, stream) = (self.write_timeout(), &mut self.stream);
        let closing = async {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        };
        let _gone_or_slow = tokio::time::timeout(timeout, closing).await;
    }

    fn write_timeout(&self) -> Duration {
        Duration::from_millis(self.write_timeout_ms.into())
    }
}
