//! Header compression (RFC 7541), both ways: plain enough to write hundreds of requests in a microsecond each, whole
//! enough to read whatever a peer may write.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod table;

pub(crate) use decoder::{Decoder, Gather, Malformed};
pub(crate) use encoder::{Encoder, Field, literal as write_literal};
pub(crate) use integer::write as write_integer;

/// Size of a dynamic table until SETTINGS say otherwise (RFC 9113, section 6.5.2).
pub(crate) const TABLE_DEFAULT_BYTES: usize = 4_096;
/// What every entry counts beside its name and value (RFC 7541, section 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;

#[cfg(test)]
mod tests;
