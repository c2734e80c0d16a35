//! The columns of an author: the number of a key, or a person.

use stentor_core::audit::Actor;
use stentor_core::id::KeyId;
use stentor_core::person::Person;

use crate::sql::{Done, Row, damaged, int, maybe_number};

/// Returns the columns of an author: the number of a key, or a person.
pub(crate) fn author_columns(actor: &Actor) -> (Option<i64>, Option<&Person>) {
    match actor {
        Actor::Root => (None, None),
        Actor::Key(key) => (Some(int(key.raw())), None),
        Actor::Person(person) => (None, Some(person)),
    }
}

/// Reads an author from the column of its key, and that of its person's subject, which the name follows.
pub(crate) fn author(row: &Row<'_>, key_at: usize, person_at: usize) -> Done<Actor> {
    let (subject, name): (Option<String>, Option<String>) = (row.get(person_at)?, row.get(person_at + 1)?);
    match (subject, maybe_number(row, key_at)?) {
        (Some(subject), _) => {
            let person = Person::new(&subject, &name.unwrap_or_default());
            person.map(Actor::Person).map_err(|_| damaged("a person without a subject"))
        }
        (None, Some(key)) => Ok(Actor::Key(KeyId::from_raw(key))),
        (None, None) => Ok(Actor::Root),
    }
}
