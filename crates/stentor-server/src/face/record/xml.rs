//! Records as XML, by their shapes: what is read may stand in any order, and what is unknown is refused where it stands.
//!
//! A list is its element again and again, a map is `<entry><key/><value/></entry>`, a choice is one element, and any JSON
//! is its text. An element that is `xsi:nil` is null, and for a list the empty one.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::read_record;
pub use write::write_record;

/// Namespace of all elements of the contract.
pub const NAMESPACE: &str = "urn:stentor:v1";
/// Namespace of the attribute that says that there is nothing.
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// What stands in a map, and in each of its entries.
pub const ENTRY: &str = "entry";
/// Where an entry has its name.
pub const KEY: &str = "key";
/// Where an entry has what stands under the name.
pub const VALUE: &str = "value";
