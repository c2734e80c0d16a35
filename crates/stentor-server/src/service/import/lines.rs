//! The cutter: splits a stream of bytes into blocks of whole lines.

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

use crate::service::{Problem, ServiceResult};

/// Longest line, without its end.
pub const LINE_MAX_BYTES: usize = 16 * 1_024;
/// Size from which a block is passed on.
const BLOCK_BYTES: usize = 512 * 1_024;

/// Reads the body to its end and passes on blocks. Stops when the receiver is closed.
pub(super) async fn read<S, E>(mut body: S, to: mpsc::Sender<Bytes>) -> ServiceResult<()>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: Into<Problem>,
{
    let mut cutter = Cutter::default();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(Into::into)?;
        if let Some(block) = cutter.push(&piece)
            && to.send(block).await.is_err()
        {
            // The parser has ended, and the failed part reports its error.
            return Ok(());
        }
    }
    let _reader_may_have_failed = to.send(cutter.finish()).await;
    Ok(())
}

/// Collects bytes until a block is full. Of an overlong line it keeps just enough for the parser to refuse it.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    pending: BytesMut,
    skipping: bool,
}

impl Cutter {
    /// Takes a piece. Returns a block of whole lines when it is large enough.
    pub(super) fn push(&mut self, mut piece: &[u8]) -> Option<Bytes> {
        if self.skipping {
            let end = piece.iter().position(|byte| *byte == b'\n')?;
            // The line's end is kept, so that the next line is not joined to the shortened one.
            piece = &piece[end..];
            self.skipping = false;
        }
        self.pending.extend_from_slice(piece);
        if self.pending.len() < BLOCK_BYTES {
            return None;
        }
        match self.pending.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                let block = self.pending.split_to(end + 1).freeze();
                self.shorten();
                Some(block)
            }
            None => {
                self.shorten();
                None
            }
        }
    }

    /// Returns the rest.
    pub(super) fn finish(self) -> Bytes {
        self.pending.freeze()
    }

    /// Drops the rest of an unfinished line that is already too long.
    fn shorten(&mut self) {
        if self.pending.len() > LINE_MAX_BYTES {
            // One byte more than allowed is kept, by which the parser notices that the line was too long.
            self.pending.truncate(LINE_MAX_BYTES + 1);
            self.skipping = true;
        }
    }
}
