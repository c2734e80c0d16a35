//! Expected digests of a fork's responses, computed before the first request.

use crate::plan::Cell;
use crate::subject::SubjectError;
use crate::subject::reference::Digest;
use std::collections::BTreeMap;

/// Digests in hexadecimal digits; empty without exchanges.
#[derive(Default)]
pub(super) struct Digests {
    /// Digest of one exchange.
    pub(super) first: String,
    /// Digest of the whole warm-up.
    pub(super) warmup: String,
    /// Digest of all measured exchanges.
    pub(super) samples: String,
}

impl Digests {
    /// Computes the digests. Fails if the cell has no valid exchanges.
    pub(super) fn of(
        cell: &Cell,
        factors: &BTreeMap<String, String>,
        seed: u64,
    ) -> Result<Self, SubjectError> {
        let amount = cell.amount;
        let (mut digest, mut digests) = (Digest::default(), Self::default());
        for seq in 0..u64::from(amount.samples.max(amount.warmup).max(1)) {
            let exchange = cell.op.exchange_number(factors, seed, seq);
            let exchange =
                exchange.ok_or_else(|| SubjectError::Exchange("the cell makes no sense".into()))?;
            digest.add(&exchange.answer);
            let counted = seq + 1;
            for (count, place) in [
                (1, &mut digests.first),
                (u64::from(amount.warmup), &mut digests.warmup),
                (u64::from(amount.samples), &mut digests.samples),
            ] {
                if counted == count {
                    *place = digest.hex();
                }
            }
        }
        Ok(digests)
    }
}
