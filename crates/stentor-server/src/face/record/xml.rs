//! Records as XML, by their shapes. Elements may have any order; unknown elements are rejected with their place.
//!
//! A list is a repeated element, a map is `<entry><key/><value/></entry>`, a choice is one element, and any JSON is its text. An element
//! with `xsi:nil` is null, and for a list the empty one.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::read_record;
pub use write::write_record;

/// Namespace of all elements of the contract.
pub const NAMESPACE: &str = "urn:stentor:v1";
/// Namespace of the attribute `nil`.
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// Element of an entry in a map.
pub const ENTRY: &str = "entry";
/// Element with the key of an entry.
pub const KEY: &str = "key";
/// Element with the value of an entry.
pub const VALUE: &str = "value";
