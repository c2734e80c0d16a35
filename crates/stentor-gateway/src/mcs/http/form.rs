//! Forms, as GCM takes them.

use std::collections::HashMap;

/// Most fields of a form.
const FIELDS_MAX_COUNT: usize = 64;

/// The fields of a form. Of repeated fields the first one counts.
pub(super) struct McsForm(HashMap<String, String>);

impl McsForm {
    /// Parses a form; `None` if it has too many fields.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut fields = HashMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            if fields.len() >= FIELDS_MAX_COUNT {
                return None;
            }
            fields.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Some(Self(fields))
    }

    /// Returns a field that is present and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
