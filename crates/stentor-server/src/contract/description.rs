//! The description of the contract: every operation with its request and reply records, and numbers that never change.

mod numbers;

use std::sync::OnceLock;

use super::shape::{Described, FieldShape, RecordShape, Shape, Shapes};
use super::streams::{self, StreamShape};
use super::{CallerKnowledge, Facts, Operation, RefusedView};
pub use numbers::{Numbers, appended};

/// An operation as a face describes it.
#[derive(Debug, Clone)]
pub struct OperationShape {
    /// Its entry in the table.
    pub facts: Facts,
    /// Request record: the parts of the subject, then the request's own fields.
    pub request: RecordShape,
    /// Reply record.
    pub reply: RecordShape,
}

/// All operations, with all records that their requests and replies use.
#[derive(Debug, Clone)]
pub struct Description {
    /// Operations in the order of the table.
    pub operations: Vec<OperationShape>,
    /// Records by name.
    pub shapes: Shapes,
    /// Operations with streams.
    pub streams: Vec<StreamShape>,
    /// Records that only streams use, by name.
    pub streamed: Shapes,
    /// Numbers of operations and fields.
    pub numbers: Numbers,
}

/// Returns the description of the contract.
#[must_use]
pub fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| {
        let mut shapes = Shapes::default();
        let mut operations = super::table::describe(&mut shapes);
        let mut streamed = Shapes::default();
        let mut streams = streams::describe(&operations, &mut streamed);
        // The refusal is added too: formats without an error form of their own reply with it.
        shapes.add::<RefusedView>();
        let numbers = Numbers::kept();
        operations.iter_mut().for_each(|one| {
            numbers.sort(&mut one.request);
            numbers.sort(&mut one.reply);
        });
        for one in &mut streams {
            numbers.sort(&mut one.request);
            numbers.sort(&mut one.reply);
        }
        let all = shapes.0.values_mut().chain(streamed.0.values_mut());
        all.for_each(|record| numbers.sort(record));
        Description { operations, shapes, streams, streamed, numbers }
    })
}

impl Description {
    /// Lists every record: requests, replies and nested records.
    pub fn records(&self) -> impl Iterator<Item = &RecordShape> {
        let own = self.operations.iter().flat_map(|one| [&one.request, &one.reply]);
        let in_pieces = self.streams.iter().map(|one| &one.request).chain(self.streamed.0.values());
        let mut known = std::collections::BTreeSet::new();
        own.chain(self.shapes.0.values())
            .chain(in_pieces)
            .filter(move |record| known.insert(record.name.clone()))
    }

    /// Returns the record of a name.
    #[must_use]
    pub fn record(&self, name: &str) -> Option<&RecordShape> {
        self.records().find(|record| record.name == name)
    }
}

/// Describes one operation.
pub(super) fn describe<O: Operation>(shapes: &mut Shapes) -> OperationShape {
    let subject = O::FACTS.subject.iter().map(|part| FieldShape::required(part, Shape::Text, ""));
    let about = "The app; for the operator's key, which belongs to none.";
    let app = O::By::NAMES_APP.then(|| FieldShape::optional("app", Shape::Text, about));
    let request_fields = O::Request::describe(shapes).fields;
    let fields = subject.chain(request_fields).chain(app).collect();
    let request = RecordShape::new(&format!("{}Request", O::FACTS.type_name), &O::FACTS.sentences(), fields);
    let mut reply = O::Reply::describe(shapes);
    if reply.name.is_empty() {
        reply = RecordShape::new("Empty", "Nothing: it was done.", Vec::new());
    }
    OperationShape { facts: O::FACTS, request, reply }
}

#[cfg(test)]
mod tests;
