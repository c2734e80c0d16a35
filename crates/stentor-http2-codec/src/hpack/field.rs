//! Header fields, and what their reader wants to know of them quickly.

/// What a field counts beside its name and value, in tables (RFC 7541, section 4.1) and in lists (RFC 9113, section
/// 6.5.2).
pub const ENTRY_OVERHEAD_BYTES: usize = 32;

/// One header field of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a, K> {
    /// What its reader knows of it.
    pub kind: K,
    /// The name, as it was written.
    pub name: &'a [u8],
    /// The value, as it was written.
    pub value: &'a [u8],
}

/// What a reader finds out about a field: the tables remember it, so that it is found once and not at each repetition.
pub trait FieldKind: Copy {
    /// Returns the kind of a field with this name.
    fn of_name(name: &[u8]) -> Self;

    /// Returns the kind of a field with this value, whose name has this kind, be it from a field with another value.
    #[must_use]
    fn with_value(self, name: &[u8], value: &[u8]) -> Self;
}

/// The kind for a reader that looks at names and values only.
impl FieldKind for () {
    fn of_name(_name: &[u8]) -> Self {}

    fn with_value(self, _name: &[u8], _value: &[u8]) -> Self {}
}
