//! Words that stand for the values of an enumeration, the same in files and for people.

/// Declares an enumeration with the word of each value, by which it is written and read.
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
