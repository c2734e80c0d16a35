//! The payload: the bytes of an exchange's values as text, derived from the plan of its study.

use std::collections::BTreeMap;

use super::{MeasuredCell, Results};
use crate::plan::{Experiment, StudyPlan};
use crate::subject::SERVED_STACK;
use crate::subject::reference::{OWN, Op};
use stentor_wire::{Content, Point};

/// The factor of an exchange that transfers only a part of the points; a whole transfers all.
const PART: &str = "page";
/// The seed of contents; their size hardly depends on it.
const SEED: u64 = 1;

/// Payloads of cells; each content is made once.
pub(super) struct Payloads {
    plan: Option<StudyPlan>,
    made: BTreeMap<String, Option<f64>>,
}

impl Payloads {
    /// Reads the plan of the study, if it has one.
    pub(super) fn of(results: &Results) -> Self {
        Self { plan: StudyPlan::shipped(&results.study).ok().flatten(), made: BTreeMap::new() }
    }

    /// Returns the payload of a whole exchange, request and response together, in bytes; `None` if it is unknown.
    pub(super) fn bytes(&mut self, cell: &MeasuredCell) -> Option<f64> {
        let plan = self.plan.as_ref()?;
        let experiment = plan.experiments.iter().find(|experiment| experiment.name == cell.experiment)?;
        let settings = settings(experiment, cell)?;
        let key = format!("{:?} {settings:?}", experiment.op);
        *self.made.entry(key).or_insert_with(|| made(experiment.op, &settings))
    }
}

/// Returns the settings of both halves that affect the content; `None` if a level is not in the plan.
fn settings(experiment: &Experiment, cell: &MeasuredCell) -> Option<BTreeMap<String, String>> {
    let mut settings = experiment.settings.clone();
    for factor in &experiment.factors {
        let Some(name) = cell.levels.get(&factor.name) else { continue };
        let level = factor.levels.iter().find(|level| level.level == *name)?;
        if level.set.is_empty() {
            settings.insert(factor.name.clone(), name.clone());
        }
        settings.extend(level.set.clone());
    }
    settings.remove(PART);
    if cell.stack == SERVED_STACK {
        settings.insert(OWN.to_owned(), String::new());
    }
    Some(settings)
}

fn made(op: Op, settings: &BTreeMap<String, String>) -> Option<f64> {
    let exchange = op.exchange_number(settings, SEED, 0)?;
    Some((letters(&exchange.request) + letters(&exchange.answer)) as f64)
}

/// Counts the bytes of values as text.
fn letters(content: &Content) -> usize {
    match content {
        Content::Payload(text) => text.len(),
        Content::Numbers(numbers) => numbers.iter().map(|number| number.to_string().len()).sum(),
        Content::Texts(texts) => texts.iter().map(String::len).sum(),
        Content::Objects(items) => {
            let of = |item: &stentor_wire::Item| {
                item.id.to_string().len() + item.name.len() + item.price.to_string().len()
            };
            items.iter().map(of).sum()
        }
        Content::Points(points) => points.iter().flat_map(Point::fields).map(str::len).sum(),
    }
}
