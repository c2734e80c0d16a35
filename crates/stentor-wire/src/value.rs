//! One model of values for the formats that name their types.

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Nil,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number with a fraction; infinities and "not a number" cannot be written.
    Double(f64),
    /// A text.
    Text(String),
    /// Bytes; JSON carries them as base64 text and reads text back.
    Bytes(Vec<u8>),
    /// A date and time as XML-RPC writes it, such as `19980717T14:08:55`; JSON reads text back.
    DateTime(String),
    /// Values in order.
    List(Vec<Self>),
    /// Named values in order.
    Record(Vec<(String, Self)>),
}

impl Value {
    /// Returns the first field with a name, if this is a record that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Record(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the text, if this is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if this is a whole one.
    #[must_use]
    pub const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}
