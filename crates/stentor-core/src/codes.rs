//! Enums that are stored as one byte and shown as a word: codes and words are never reused.

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal $(| $alias:literal)*;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(rename_all = "snake_case")]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $code,)* }

        impl $name {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the byte that the engine stores; never reused.
            #[must_use]
            pub const fn code(self) -> u8 { self as u8 }

            /// Restores it from its byte.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            /// Returns the word used in the API and in metrics.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::error::Invalid;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                use $crate::word::Word;
                Self::from_word(text).ok_or_else(|| {
                    $crate::error::Invalid::new("", format!("must be one of {}", Self::WORDS.join(", ")))
                })
            }
        }

        $crate::word::words! { $name { $($variant = $text $(| $alias)*;)* } }
    };
}

pub(crate) use codes;
