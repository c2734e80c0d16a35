//! A person who uses the console, as the identity provider of the operator names them.

use serde::{Deserialize, Serialize};

use crate::error::Invalid;

/// Longest name that an identity provider may give to a subject (OpenID Connect Core, section 2).
const SUBJECT_MAX_CHARS: usize = 255;
/// Longest name for readers; the rest is cut off.
const NAME_MAX_CHARS: usize = 64;

/// A person who uses the console. Devices belong to users, not to persons.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Person {
    subject: String,
    name: String,
}

impl Person {
    /// Checks the subject, and makes a name that a page and a terminal can show. Without a name, the subject is the name.
    pub fn new(subject: &str, name: &str) -> Result<Self, Invalid> {
        let is_printable = subject.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if subject.is_empty() || subject.len() > SUBJECT_MAX_CHARS || !is_printable {
            let problem = format!("must be 1 to {SUBJECT_MAX_CHARS} printable letters of ASCII");
            return Err(Invalid::new("sub", problem));
        }
        let shown = shown(name);
        let name = if shown.is_empty() { self::shown(subject) } else { shown };
        Ok(Self { subject: subject.to_owned(), name })
    }

    /// Returns the name of the person at the identity provider, which never changes.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the name for readers. The person may be able to choose it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn shown(text: &str) -> String {
    let plain = text.chars().map(|letter| if is_unshown(letter) { ' ' } else { letter });
    let short: String = plain.take(NAME_MAX_CHARS).collect();
    short.trim().to_owned()
}

/// Returns true for a character that a terminal obeys or that changes the order or the look of its neighbours.
fn is_unshown(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(name: &str) -> String {
        Person::new("subject", name).expect("a subject").name().to_owned()
    }

    #[test]
    fn a_name_is_short_and_has_nothing_that_changes_what_stands_beside_it() {
        assert_eq!(name_of("Ada\u{1b}[2J\u{202e}Lovelace\n"), "Ada [2J Lovelace");
        assert_eq!(name_of(&"語".repeat(200)).chars().count(), NAME_MAX_CHARS);
        assert_eq!(name_of("\u{200b}\u{feff} "), "subject", "the subject is the name of who has none");
    }

    #[test]
    fn a_subject_is_taken_as_it_is_or_not_at_all() {
        let long = "s".repeat(SUBJECT_MAX_CHARS);
        for subject in ["248289761001", "auth0|5f7", "cn=Ada Lovelace,dc=example", long.as_str()] {
            assert_eq!(Person::new(subject, "").expect(subject).subject(), subject);
        }
        for subject in ["", "a\nb", "ä", "a\u{202e}b", &format!("{long}s")] {
            assert!(Person::new(subject, "Ada").is_err(), "{subject:?}");
        }
    }
}
