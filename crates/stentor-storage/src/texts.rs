//! The texts that a store accepts: the same for each engine, so that every store can be copied into every other.

use stentor_core::ports::store::StoreError;

/// The reason for refusing a text.
pub(crate) const NUL_REFUSED: &str = "a text with U+0000 cannot be kept";

/// Returns true if a text has U+0000, which no text of PostgreSQL can hold.
pub(crate) fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

/// Refuses texts of which one cannot be kept.
pub(crate) fn check_texts(texts: &[&str]) -> Result<(), StoreError> {
    match texts.iter().any(|text| has_nul(text)) {
        true => Err(StoreError::Conflict(NUL_REFUSED.to_owned())),
        false => Ok(()),
    }
}
