//! What engines keep of a device beside its row.

use stentor_core::device::PushToken;
use stentor_core::ports::store::StoreError;

use super::{TransferRow, TransferValue};

/// Returns key and token of each device among the rows of its table.
pub(crate) fn device_tokens(
    columns: &[&str],
    rows: &[TransferRow],
) -> Result<Vec<(i64, PushToken)>, StoreError> {
    let place = |name: &str| columns.iter().position(|column| *column == name);
    let (key_at, token_at) = (place("key"), place("token"));
    let damaged = |what: &str| StoreError::Damaged(what.to_owned());
    let read = |row: &TransferRow| {
        let (Some(TransferValue::Int(key)), Some(TransferValue::Text(token))) =
            (key_at.and_then(|at| row.get(at)), token_at.and_then(|at| row.get(at)))
        else {
            return Err(damaged("a device without a key or a token"));
        };
        let token = PushToken::new(token.clone()).map_err(|_| damaged("a token that none can be"))?;
        Ok((*key, token))
    };
    rows.iter().map(read).collect()
}
