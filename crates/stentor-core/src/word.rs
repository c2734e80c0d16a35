//! Words that stand for the values of an enumeration: several are accepted as input, one is written.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Visitor};

/// Implements the words of an enumeration; they are read regardless of capitalization.
macro_rules! words {
    ($name:ident { $($variant:ident = $($word:literal)|+;)* }) => {
        impl $crate::word::Word for $name {
            const WORDS: &'static [&'static str] = &[$($($word,)+)*];

            fn from_word(text: &str) -> Option<Self> {
                match text {
                    $($($word)|+ => Some(Self::$variant),)*
                    $($(_ if text.eq_ignore_ascii_case($word) => Some(Self::$variant),)+)*
                    _ => None,
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::word::deserialize(from)
            }
        }
    };
}
pub(crate) use words;

/// A value that is written and read as a word.
pub trait Word: Sized + 'static {
    /// All accepted words in the order of the values; the first word of a value is the one that is written.
    const WORDS: &'static [&'static str];

    /// Parses a word regardless of capitalization. Returns `None` for an unknown word.
    fn from_word(text: &str) -> Option<Self>;
}

/// Deserializes a word; the error for an unknown word lists the accepted ones.
pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_str(Reader(PhantomData))
}

struct Reader<T>(PhantomData<T>);

impl<T: Word> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "one of the words {}", T::WORDS.join(", "))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_word(text).ok_or_else(|| E::unknown_variant(text, T::WORDS))
    }
}

#[cfg(test)]
mod tests {
    use super::Word;
    use crate::app::Scope;
    use crate::device::{Platform, ProviderKind};
    use crate::message::Priority;
    use crate::schedule::CatchUp;

    #[test]
    fn every_name_of_an_apple_system_means_apple_and_is_written_as_apple() {
        for name in [
            "apple", "ios", "iOS", "ipados", "iPadOS", "macos", "macOS", "watchOS", "tvOS", "visionOS", "IOS",
        ] {
            let json = format!("\"{name}\"");
            let read: Platform = serde_json::from_str(&json).expect(name);
            assert_eq!(read, Platform::Apple, "{name}");
            assert_eq!(serde_json::to_string(&read).expect("a word"), "\"apple\"");
            assert_eq!(name.parse(), Ok(Platform::Apple));
        }
        assert_eq!(Platform::from_word("Android"), Some(Platform::Android));
        assert_eq!(Platform::from_word("io"), None);
    }

    #[test]
    fn a_refused_word_is_answered_with_all_that_would_be_right() {
        for word in ["symbian", "huawei", ""] {
            let refused = serde_json::from_str::<Platform>(&format!("\"{word}\"")).expect_err("no such word");
            Platform::WORDS.iter().for_each(|known| {
                assert!(refused.to_string().contains(&format!("`{known}`")), "{refused}");
            });
        }
    }

    #[test]
    fn only_a_word_is_a_word() {
        for wrong in ["{\"android\":null}", "1", "null", "[\"android\"]"] {
            let refused = serde_json::from_str::<Platform>(wrong).expect_err(wrong).to_string();
            assert!(refused.contains("one of the words android, apple, ios"), "{refused}");
        }
    }

    fn leads_back<T: Word + serde::Serialize + PartialEq + std::fmt::Debug>() {
        for word in T::WORDS {
            let value = T::from_word(word).expect(word);
            let written = serde_json::to_string(&value).expect("a word");
            assert_eq!(T::from_word(written.trim_matches('"')), Some(value), "{word}");
            assert!(T::WORDS.contains(&written.trim_matches('"')), "{written}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        leads_back::<Platform>();
        leads_back::<ProviderKind>();
        leads_back::<Priority>();
        leads_back::<Scope>();
        leads_back::<CatchUp>();
    }
}
