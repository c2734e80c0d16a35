//! The facts that an app states about a device. The optional texts among them have one table. Records, columns, options and descriptions are
//! made from it.

use crate::error::Invalid;
use crate::name::{ExternalId, Tag, TextRule};

use super::PushToken;

/// Passes the table of the optional texts of a device to a macro. A row has a sentence about the text, its name, its type, a sentence about a
/// new value, and the help of its option. The name is that of the field, of the column, and with hyphens of the option.
#[macro_export]
macro_rules! device_texts {
    ($declare:ident) => {
        $declare! {
            /// BCP 47 language tag.
            locale: $crate::name::Locale, "New language.", "The user's language";
            /// IANA time zone name.
            time_zone: $crate::name::TimeZoneName, "New time zone.", "The user's time zone";
        }
    };
}

/// An optional text about a device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceText {
    /// Name of the field and of the column.
    pub name: &'static str,
    /// Help for the option of the command that registers a device.
    pub help: &'static str,
    /// The rule of its values.
    pub rule: TextRule,
}

macro_rules! declare_facts {
    ($(#[doc = $about:literal] $name:ident: $type:ty, $new:literal, $help:literal;)*) => {
        /// Number of the optional texts.
        pub const DEVICE_TEXTS_COUNT: usize = [$(stringify!($name)),*].len();

        /// The optional texts, in the order of their columns.
        pub const DEVICE_TEXTS: [DeviceText; DEVICE_TEXTS_COUNT] =
            [$(DeviceText { name: stringify!($name), help: $help, rule: <$type>::RULE }),*];

        /// The facts about a device that its app may change at any time.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct DeviceFacts {
            /// The owner.
            pub user: Option<ExternalId>,
            $(#[doc = $about] pub $name: Option<$type>,)*
            /// Marks; sorted, without repeats.
            pub tags: Vec<Tag>,
        }

        /// A change of a device; `None` leaves a field unchanged.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct DevicePatch {
            /// New address; also revives a retired device.
            pub token: Option<PushToken>,
            /// New owner; `Some(None)` takes the user away.
            pub user: Option<Option<ExternalId>>,
            $(#[doc = $new] pub $name: Option<Option<$type>>,)*
            /// New marks, all of them.
            pub tags: Option<Vec<Tag>>,
        }

        impl DeviceFacts {
            /// Returns the optional texts.
            #[must_use]
            pub fn texts(&self) -> [Option<&str>; DEVICE_TEXTS_COUNT] {
                [$(self.$name.as_ref().map(<$type>::as_str)),*]
            }

            /// Creates facts of optional texts alone.
            pub fn of_texts(texts: [Option<String>; DEVICE_TEXTS_COUNT]) -> Result<Self, Invalid> {
                let [$($name),*] = texts;
                Ok(Self { $($name: $name.map(<$type>::new).transpose()?,)* ..Self::default() })
            }
        }

        impl DevicePatch {
            /// Replaces all facts.
            #[must_use]
            pub fn replacing(facts: DeviceFacts) -> Self {
                let DeviceFacts { user, $($name,)* tags } = facts;
                Self { token: None, user: Some(user), $($name: Some($name),)* tags: Some(tags) }
            }

            /// Returns the new optional texts.
            #[must_use]
            pub fn texts(&self) -> [Option<Option<&str>>; DEVICE_TEXTS_COUNT] {
                [$(self.$name.as_ref().map(|new| new.as_ref().map(<$type>::as_str))),*]
            }
        }
    };
}
crate::device_texts!(declare_facts);

/// Returns a list of names, with those of the optional texts between others.
#[must_use]
pub const fn with_device_texts<const N: usize>(
    before: &[&'static str],
    after: &[&'static str],
) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = if at < before.len() {
            before[at]
        } else if at < before.len() + DEVICE_TEXTS_COUNT {
            DEVICE_TEXTS[at - before.len()].name
        } else {
            after[at - before.len() - DEVICE_TEXTS_COUNT]
        };
        at += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Locale;

    #[test]
    fn texts_keep_their_order_in_every_form() {
        let facts = DeviceFacts { locale: Locale::new("de-CH").ok(), ..DeviceFacts::default() };
        let texts = facts.texts();
        assert_eq!((texts[0], DEVICE_TEXTS[0].name), (Some("de-CH"), "locale"));
        assert_eq!(DeviceFacts::of_texts(texts.map(|text| text.map(str::to_owned))), Ok(facts.clone()));
        assert_eq!(DevicePatch::replacing(facts.clone()).texts(), texts.map(Some));
        let names: [_; DEVICE_TEXTS_COUNT + 2] = with_device_texts(&["first"], &["last"]);
        assert_eq!((names[0], names[1], names.last()), ("first", "locale", Some(&"last")));
    }
}
