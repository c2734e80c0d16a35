//! Header compression (RFC 7541): a decoder for any valid header block, an encoder with a dynamic table, and functions that write without
//! one.

mod decoder;
mod encoder;
mod field;
mod huffman;
mod integer;
mod malformed;
mod stateless;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, FieldReader};
pub use encoder::{Encoder, Mark, OwnedField};
pub use field::{ENTRY_OVERHEAD_BYTES, Field, FieldKind};
pub use integer::write_integer;
pub use malformed::Malformed;
pub use stateless::{write_literal, write_status, write_table_size};
pub use table::TABLE_DEFAULT_BYTES;
