//! Places for subjects that a user names, although no slot of the study lists them.

use super::expand::{fits, stack};
use super::{Experiment, PlanChoice, PlanSlot};
use crate::subject::dialect::SubjectDialect;
use crate::subject::{BUILT_IN, Definition, SERVED};

impl Experiment {
    /// Makes a slot for each named subject that fits the experiment and has no slot in this variant.
    pub(super) fn named_slots(
        &self,
        variant: &String,
        definitions: &[Definition],
        choice: &PlanChoice,
    ) -> Vec<PlanSlot> {
        let able = definitions.iter().filter(|one| self.takes_named && one.ops.contains(&self.op));
        let named = able.filter(|one| choice.subjects.iter().any(|wish| names(wish, &one.id)));
        named.filter_map(|one| self.named_slot(variant, one)).collect()
    }

    fn named_slot(&self, variant: &String, definition: &Definition) -> Option<PlanSlot> {
        let dialect = definition.dialect().ok().map(SubjectDialect::name)?;
        let of_dialect = |slot: &&PlanSlot| {
            fits(&slot.variants, variant)
                && slot.dialects.iter().any(|known| known == dialect)
                && !slot.also.iter().any(|part| part == SERVED)
        };
        let slots: Vec<&PlanSlot> = self.subjects.iter().filter(of_dialect).collect();
        if slots.iter().any(|slot| stack(slot, &definition.id).is_some()) {
            return None;
        }
        // The settings of a slot are known to the software for which it was made, and perhaps to no other.
        let general = slots.iter().find(|slot| slot.rust && slot.set.is_empty());
        let label = match general {
            Some(slot) => slot.label.as_str(),
            None if slots.is_empty() => dialect,
            None => return None,
        };
        Some(PlanSlot::of_one(label, dialect, &definition.id))
    }
}

impl PlanSlot {
    /// Makes a slot for one subject.
    fn of_one(label: &str, dialect: &str, id: &str) -> Self {
        Self {
            label: label.to_owned(),
            dialects: vec![dialect.to_owned()],
            period: Vec::new(),
            server: Vec::new(),
            also: vec![id.to_owned()],
            standard: Vec::new(),
            rust: id.ends_with(BUILT_IN),
            variants: Vec::new(),
            set: std::collections::BTreeMap::new(),
        }
    }
}

/// Returns true if a selected text names a subject. The ids of our own subjects have common parts, so each is named as a whole.
fn names(wish: &str, id: &str) -> bool {
    match id {
        _ if id.ends_with(SERVED) => false,
        _ if id.ends_with(BUILT_IN) => id == wish,
        _ => id.contains(wish),
    }
}
