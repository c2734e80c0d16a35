//! Errors of reading bytes, and of writing values that a format cannot carry.

/// The reason why a document was not read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It is larger than allowed.
    #[error("larger than {max_bytes} bytes")]
    TooLarge {
        /// The limit.
        max_bytes: usize,
    },
    /// It is nested deeper than allowed.
    #[error("nested deeper than {max}")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// It has more of something than allowed.
    #[error("more than {max} {what}")]
    TooMany {
        /// The kind of things counted.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// It uses a feature that is never read: a document type, an entity of its own, a foreign encoding.
    #[error("{0} are not read")]
    Forbidden(&'static str),
    /// It is not well formed.
    #[error("not well formed: {0}")]
    Malformed(String),
    /// It is well formed but not the expected document.
    #[error("{0}")]
    Unexpected(String),
    /// A number cannot be parsed, or does not fit.
    #[error("not a number of the wanted kind: {0:?}")]
    Number(String),
    /// The format has no way to write this.
    #[error("{0} cannot be written in this format")]
    Unrepresentable(&'static str),
    /// An envelope of a SOAP that is neither 1.1 nor 1.2.
    #[error("neither SOAP 1.1 nor SOAP 1.2")]
    SoapVersion,
    /// A header block must be understood and is not.
    #[error("header {0:?} must be understood")]
    NotUnderstood(String),
}

impl WireError {
    /// Returns the error of a missing part.
    pub(crate) fn missing(what: &str) -> Self {
        Self::Unexpected(format!("{what} is missing"))
    }

    /// Returns the error of a wrong element.
    pub(crate) fn unexpected(found: &str, wanted: &str) -> Self {
        Self::Unexpected(format!("<{}> where {wanted} was expected", shortened(found)))
    }

    /// Returns the error of a bad number, quoted in few characters.
    pub(crate) fn number(text: &str) -> Self {
        Self::Number(shortened(text))
    }
}

/// Shortens names in errors, because a sender may choose them.
fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 40;
    text.chars().take(CHARACTERS_MAX).collect()
}
