//! Cuts a stream of bytes into blocks of whole lines.

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

use crate::service::{Problem, ServiceResult};

/// Longest line, without its end.
pub const LINE_MAX_BYTES: usize = 16 * 1_024;
/// A block is handed on when it is this large.
const BLOCK_BYTES: usize = 512 * 1_024;

/// Reads the body to its end and hands on blocks; stops when nobody takes them.
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
            // Nobody parses any more: whoever has failed tells why.
            return Ok(());
        }
    }
    let _reader_may_have_failed = to.send(cutter.finish()).await;
    Ok(())
}

/// Gathers bytes until a block is full; of a line too long it keeps just enough to be refused.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    pending: BytesMut,
    skipping: bool,
}

impl Cutter {
    /// Takes a piece; returns a block of whole lines when it is large enough.
    pub(super) fn push(&mut self, mut piece: &[u8]) -> Option<Bytes> {
        if self.skipping {
            let end = piece.iter().position(|byte| *byte == b'\n')?;
            // The end of the line stays, so that the next line is not joined to the shortened one.
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

    /// Returns what is left.
    pub(super) fn finish(self) -> Bytes {
        self.pending.freeze()
    }

    /// Drops the rest of an unfinished line that is already too long.
    fn shorten(&mut self) {
        if self.pending.len() > LINE_MAX_BYTES {
            // One byte more than allowed is kept: so much tells the parser that the line was too long.
            self.pending.truncate(LINE_MAX_BYTES + 1);
            self.skipping = true;
        }
    }
}
