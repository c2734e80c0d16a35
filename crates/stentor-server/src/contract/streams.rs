//! Streaming variants of operations, for faces with streams. Access and error codes are those of the underlying operation in the table.

use super::description::OperationShape;
use super::devices::DeviceRequest;
use super::import::ImportQuery;
use super::operation::Operation as _;
use super::shape::{FieldShape, RecordShape, Shape, Shapes, record_of};
use super::table::{ImportDevices, ShowCampaign};

/// Facts about a streaming operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamFacts {
    /// Name: a noun and a verb.
    pub name: &'static str,
    /// Name for formats without dots in names.
    pub type_name: &'static str,
    /// Description in sentences.
    pub about: &'static str,
    /// The underlying operation, which faces without streams offer in one request.
    pub operation: &'static str,
    /// The side that is streamed.
    pub flow: StreamFlow,
}

/// The streamed side of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFlow {
    /// The request.
    Request,
    /// The reply.
    Reply,
}

/// A stream as a face describes it.
#[derive(Debug, Clone)]
pub struct StreamShape {
    /// Facts about the stream.
    pub facts: StreamFacts,
    /// Request record, or the record of each piece if the request is streamed.
    pub request: RecordShape,
    /// Reply record, or the record of each piece if the reply is streamed.
    pub reply: RecordShape,
}

/// All streaming operations.
pub const STREAMS: &[StreamFacts] = &[IMPORT_STREAM, WATCH];

/// Streaming import of devices.
pub const IMPORT_STREAM: StreamFacts = StreamFacts {
    name: "devices.import_stream",
    type_name: "ImportDeviceStream",
    about: "Registers devices from a stream: first, if needed, the options, then devices or portions of lines. A bad device is\n\
            refused by itself; reading waits for the store. The result has the totals, and the first refusals with their lines.",
    operation: ImportDevices::FACTS.name,
    flow: StreamFlow::Request,
};

/// The ledger of a campaign, repeated after changes until the campaign has ended.
pub const WATCH: StreamFacts = StreamFacts {
    name: "campaigns.watch",
    type_name: "WatchLedger",
    about: "Returns the books of a campaign as they are, and again when they have changed, at most once a second, until it has\n\
            ended and nothing of it is in flight. The id of its message does as well.",
    operation: ShowCampaign::FACTS.name,
    flow: StreamFlow::Reply,
};

/// Describes all streams by their underlying operations, and adds records that only streams use to `shapes`.
pub(super) fn describe(operations: &[OperationShape], shapes: &mut Shapes) -> Vec<StreamShape> {
    let behind = |facts: &StreamFacts| operations.iter().find(|one| one.facts.name == facts.operation);
    let describe = |facts: &StreamFacts, shapes: &mut Shapes| {
        let behind = behind(facts)?;
        let request = match facts.flow {
            StreamFlow::Request => import_piece(facts, shapes),
            StreamFlow::Reply => {
                RecordShape { name: format!("{}Request", facts.type_name), ..behind.request.clone() }
            }
        };
        Some(StreamShape { facts: *facts, request, reply: behind.reply.clone() })
    };
    STREAMS.iter().filter_map(|facts| describe(facts, shapes)).collect()
}

fn import_piece(facts: &StreamFacts, shapes: &mut Shapes) -> RecordShape {
    let mut options = record_of::<ImportQuery>(shapes).fields;
    for field in options.iter_mut().filter(|field| field.name == "format") {
        field.about =
            "`ndjson` or `csv`; `ndjson` when absent. Devices in messages of their own need `ndjson`."
                .to_owned();
    }
    let app = "The app; for the operator's key, which belongs to none.";
    options.push(FieldShape::optional("app", Shape::Text, app));
    let options = shapes.put(RecordShape::new("ImportOptions", "Options of an import.", options));
    let device = Shape::Record(shapes.add::<DeviceRequest>());
    let lines = "Lines as `format` says. A line may be cut anywhere and continue in the next message.";
    let fields = vec![
        FieldShape::optional("options", options, "Options of the import; in the first message only."),
        FieldShape::optional("device", device, "One device; counted as a line."),
        FieldShape::optional("lines", Shape::Text, lines),
    ];
    let about = "A piece of an import.";
    let name = format!("{}Request", facts.type_name);
    RecordShape { is_choice: true, ..RecordShape::new(&name, about, fields) }
}
