//! Enumerations with a word for each value, used for both serialization and display.

/// Declares an enumeration with a word for each value; values are written and parsed as their words.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$about_value:meta])* $value:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$about_value])* #[serde(rename = $word)] $value,)+
        }

        impl $name {
            /// Returns its word.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    };
}
pub(crate) use words;
