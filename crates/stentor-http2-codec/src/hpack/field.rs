//! Header fields, and the kinds by which a reader recognizes them quickly.

/// Overhead of a field beyond its name and value, in tables (RFC 7541, section 4.1) and in header lists (RFC 9113, section 6.5.2).
pub const ENTRY_OVERHEAD_BYTES: usize = 32;

/// One header field of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a, K> {
    /// The reader's classification of the field.
    pub kind: K,
    /// The name, as received.
    pub name: &'a [u8],
    /// The value, as received.
    pub value: &'a [u8],
}

/// A reader's classification of a field. The tables store it with each entry, so that a repeated field is classified only once.
pub trait FieldKind: Copy {
    /// Returns the kind of a field with this name.
    fn of_name(name: &[u8]) -> Self;

    /// Returns the kind of a field with this value. `self` is the kind of its name, possibly taken from a field with another value.
    #[must_use]
    fn with_value(self, name: &[u8], value: &[u8]) -> Self;
}

/// The kind for a reader that uses only names and values.
impl FieldKind for () {
    fn of_name(_name: &[u8]) -> Self {}

    fn with_value(self, _name: &[u8], _value: &[u8]) -> Self {}
}
