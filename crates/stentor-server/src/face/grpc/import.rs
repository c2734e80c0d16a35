//! Import over a client stream, in messages with a device or with lines. Reading waits until earlier devices are stored.

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use serde_json::Value;
use stentor_wire::DocumentLimits;

use super::encoding::MessageEncoding;
use super::stream::Messages;
use super::{deadline, refused_type, written};
use crate::contract::import::Lines;
use crate::contract::streams::IMPORT_STREAM;
use crate::contract::{Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::auth::context_of;
use crate::face::http::refusal::Refusal;
use crate::face::read_timeout::with_timeout;
use crate::face::record::protobuf::Schema;
use crate::face::record::{Record, import_lines};

/// The line format in which a message may contain a device.
const NDJSON: &str = "ndjson";

/// Imports the devices of a call and returns the result.
pub(super) async fn answer(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    if let Some(refused) = refused_type(request.headers()) {
        return Ok(refused);
    }
    let wanted = MessageEncoding::of_reply(request.headers());
    let wait = deadline::deadline(request.headers())?;
    let message = deadline::within(wait, serve(&api, request)).await?;
    Ok(written(&message, wanted))
}

async fn serve(api: &Api, request: Request) -> ServiceResult<Vec<u8>> {
    let (parts, body) = request.into_parts();
    let context = context_of(&parts, api).await?;
    let encoding = MessageEncoding::of_request(&parts.headers)?;
    // Room for one message, compressed and decompressed.
    context.permit.grow(2 * api.body_max_bytes())?;
    let pieces = with_timeout(body.into_data_stream(), *api.import_timeout()).boxed();
    let max_bytes = api.body_max_bytes();
    let limits = DocumentLimits { document_max_bytes: max_bytes, ..DocumentLimits::default() };
    let mut pieces = Pieces {
        messages: Messages::of(pieces, encoding, max_bytes),
        limits,
        first: None,
        takes_devices: true,
        is_within_line: false,
    };
    let options = pieces.options().await?;
    let result = import_lines(api, &context, options, pieces.lines()).await?;
    Schema::get().write("ImportResult", &result)
}

/// A converter of messages to lines.
struct Pieces {
    messages: Messages,
    limits: DocumentLimits,
    /// The first message, if it contains no options.
    first: Option<Record>,
    takes_devices: bool,
    is_within_line: bool,
}

impl Pieces {
    /// Reads the options, if the first message contains them.
    async fn options(&mut self) -> ServiceResult<Record> {
        self.first = self.piece().await.transpose()?;
        let value = self.first.as_mut().and_then(|first| first.remove("options"));
        let mut options = match value {
            Some(Value::Object(options)) => {
                self.first = None;
                options
            }
            _ => Record::new(),
        };
        let format = options.entry("format").or_insert_with(|| NDJSON.into());
        self.takes_devices = format.as_str().is_some_and(|word| word.eq_ignore_ascii_case(NDJSON));
        Ok(options)
    }

    fn lines(self) -> Lines {
        let lines = unfold(Some(self), async |pieces| {
            let mut pieces = pieces?;
            match pieces.line().await? {
                Ok(line) => Some((Ok(line), Some(pieces))),
                Err(problem) => Some((Err(problem), None)),
            }
        });
        lines.boxed()
    }

    async fn line(&mut self) -> Option<ServiceResult<Bytes>> {
        let piece = match self.first.take() {
            Some(first) => Ok(first),
            None => self.piece().await?,
        };
        Some(piece.and_then(|piece| self.line_of(&piece)))
    }

    async fn piece(&mut self) -> Option<ServiceResult<Record>> {
        let message = self.messages.next().await?;
        let record = format!("{}Request", IMPORT_STREAM.type_name);
        Some(message.and_then(|message| Schema::get().read(&record, &message, &self.limits)))
    }

    fn line_of(&mut self, piece: &Record) -> ServiceResult<Bytes> {
        match piece.iter().next().map(|(name, value)| (name.as_str(), value)) {
            Some(("lines", Value::String(lines))) => {
                if let Some(last) = lines.bytes().last() {
                    self.is_within_line = last != b'\n';
                }
                Ok(lines.clone().into())
            }
            Some(("device", device)) if self.takes_devices => {
                let end = if std::mem::take(&mut self.is_within_line) { "\n" } else { "" };
                Ok(format!("{end}{device}\n").into())
            }
            Some(("device", _)) => Err(Problem::field("device", "needs `format` ndjson")),
            Some(("options", _)) => Err(Problem::field("options", "must be in the first message")),
            _ => Err(Problem::field("", "a message must have one of options, device, lines")),
        }
    }
}
