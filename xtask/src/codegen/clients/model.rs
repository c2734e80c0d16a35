//! The operations of the API as a client offers them: one method each, by noun.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::schema::{ApiField, ApiType, Schemas, TypeBody, ValueKind, about, referred};

/// Schema of refusals, for which clients have an error of their own.
const REFUSAL: &str = "Problem";
/// The field that requests a dry run; if the reply depends on it, the dry run is a method of its own.
const DRY_RUN: &str = "dry_run";
/// Media type of replies in another format.
const XML: &str = "application/xml";
const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// The whole API.
pub(crate) struct ApiModel {
    pub(crate) types: Vec<ApiType>,
    pub(crate) nouns: Vec<ApiNoun>,
}

/// The operations about one thing.
pub(crate) struct ApiNoun {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) calls: Vec<ApiCall>,
}

/// One method of a client.
pub(crate) struct ApiCall {
    pub(crate) verb: String,
    pub(crate) about: String,
    /// In capitals.
    pub(crate) method: String,
    pub(crate) path: String,
    /// The names inside the path, in order.
    pub(crate) subject: Vec<String>,
    pub(crate) query: Vec<ApiField>,
    pub(crate) body: Option<ApiBody>,
    /// Kind of the reply; `None` without a reply.
    pub(crate) reply: Option<ValueKind>,
    /// True if an idempotency key makes a repetition harmless.
    pub(crate) has_key: bool,
    /// True if it always requests a dry run.
    pub(crate) is_dry: bool,
    pub(crate) pages: Option<Pages>,
}

/// The body of a request.
pub(crate) enum ApiBody {
    /// A record: its name and its fields.
    Record(String, Vec<ApiField>),
    /// Text, in one of these media types.
    Text(Vec<String>),
}

/// Pagination of a list.
pub(crate) struct Pages {
    /// The parameter that takes the cursor.
    pub(crate) cursor: String,
    /// The field with the entries and their kind; `None` if a page has several lists.
    pub(crate) items: Option<(String, ValueKind)>,
}

impl ApiModel {
    /// Reads the description.
    pub(crate) fn of(document: &Value) -> anyhow::Result<Self> {
        let schemas = document["components"]["schemas"].as_object().context("there are no schemas")?;
        let schemas = Schemas(schemas);
        let mut types = schemas.types();
        types.retain(|one| one.name != REFUSAL);
        let tags = document["tags"].as_array().context("there are no tags")?;
        let mut nouns: Vec<_> = tags.iter().map(noun).collect();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for method in METHODS.iter().filter(|method| item[**method].is_object()) {
                let operation = &item[*method];
                let tag = operation["tags"][0].as_str().unwrap_or_default();
                let noun = nouns.iter_mut().find(|noun| noun.name == tag);
                let noun = noun.with_context(|| format!("{path}: {tag:?} is not among the tags"))?;
                let calls = CallReader { schemas: &schemas, types: &types, operation };
                noun.calls.extend(calls.read(&noun.name, method, path)?);
            }
        }
        Ok(Self { types, nouns })
    }
}

fn noun(tag: &Value) -> ApiNoun {
    let name = tag["name"].as_str().unwrap_or_default().to_owned();
    ApiNoun { name, about: about(tag), calls: Vec::new() }
}

/// The context of an operation that is being read.
struct CallReader<'a> {
    schemas: &'a Schemas<'a>,
    types: &'a [ApiType],
    operation: &'a Value,
}

impl CallReader<'_> {
    /// Returns the methods of an operation: one, or two if a dry run has another reply.
    fn read(&self, noun: &str, method: &str, path: &str) -> anyhow::Result<Vec<ApiCall>> {
        let id = self.operation["operationId"].as_str().unwrap_or_default();
        let verb =
            id.strip_prefix(&format!("{noun}_")).with_context(|| format!("{id} is not about {noun}"))?;
        let replies = self.replies();
        let (dry, accepted): (Vec<_>, Vec<_>) = replies.iter().partition(|kind| self.is_dry_run(kind));
        let splits = !dry.is_empty() && !accepted.is_empty();
        let is_optional = self.operation["responses"]["204"].is_object() && !replies.is_empty();
        let reply = |kinds: &[&ValueKind]| {
            let kind = kinds.first().map(|kind| (*kind).clone())?;
            Some(if is_optional { ValueKind::OrNull(Box::new(kind)) } else { kind })
        };
        let call = |verb: String, reply: Option<ValueKind>, is_dry: bool| ApiCall {
            pages: self.pages(reply.as_ref()),
            about: self.sentences(&verb, is_dry),
            method: method.to_uppercase(),
            path: path.to_owned(),
            subject: self.parameters("path").into_iter().map(|field| field.name).collect(),
            query: self.parameters("query"),
            body: self.body(splits),
            has_key: !is_dry && self.has_key(),
            verb,
            reply,
            is_dry,
        };
        if splits {
            let dry_verb = format!("{verb}_{DRY_RUN}");
            return Ok(vec![
                call(verb.to_owned(), reply(&accepted), false),
                call(dry_verb, reply(&dry), true),
            ]);
        }
        ensure!(replies.len() <= 1, "{id} has several replies");
        Ok(vec![call(verb.to_owned(), reply(&replies.iter().collect::<Vec<_>>()), false)])
    }

    /// Returns the description of a method. Repetition over HTTP is the client's task, and is left out of the user's documentation.
    fn sentences(&self, verb: &str, is_dry: bool) -> String {
        if is_dry {
            let operation = verb.trim_end_matches(DRY_RUN).trim_end_matches('_');
            return format!("Checks and counts the effect of `{operation}`, and keeps nothing.");
        }
        let text = about(self.operation);
        text.split(" With the header `Idempotency-Key`").next().unwrap_or_default().to_owned()
    }

    /// Lists the different kinds of replies.
    fn replies(&self) -> Vec<ValueKind> {
        let responses = self.operation["responses"].as_object().into_iter().flatten();
        let mut kinds = Vec::new();
        for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
            let content = response["content"].as_object().into_iter().flatten();
            // The clients speak JSON.
            let described = content.filter(|(name, media)| *name != XML && media["schema"].is_object());
            kinds.extend(described.map(|(_, media)| self.schemas.kind(&media["schema"])));
        }
        kinds.dedup();
        kinds
    }

    fn parameters(&self, place: &str) -> Vec<ApiField> {
        let all = self.operation["parameters"].as_array().into_iter().flatten();
        let here = all.filter(|one| one["in"] == place);
        here.map(|one| ApiField {
            name: one["name"].as_str().unwrap_or_default().to_owned(),
            about: about(one),
            kind: self.schemas.kind(&one["schema"]),
            is_required: one["required"] == true,
        })
        .collect()
    }

    fn body(&self, without_dry_run: bool) -> Option<ApiBody> {
        let content = self.operation["requestBody"]["content"].as_object()?;
        let Some(json) = content.get("application/json") else {
            return Some(ApiBody::Text(content.keys().cloned().collect()));
        };
        let name = referred(&json["schema"])?;
        let mut fields = self.schemas.fields(self.schemas.0.get(name)?);
        fields.retain(|field| !(without_dry_run && field.name == DRY_RUN));
        Some(ApiBody::Record(name.to_owned(), fields))
    }

    /// Returns true if an operation has idempotency keys: its replies then have a header for replayed replies.
    fn has_key(&self) -> bool {
        let responses = self.operation["responses"].as_object().into_iter().flatten();
        responses.into_iter().any(|(_, response)| response["headers"]["Idempotent-Replayed"].is_object())
    }

    fn is_dry_run(&self, kind: &ValueKind) -> bool {
        self.fields(kind).iter().any(|field| field.name == DRY_RUN)
    }

    fn fields(&self, kind: &ValueKind) -> &[ApiField] {
        let ValueKind::Named(name) = kind else { return &[] };
        match self.types.iter().find(|one| one.name == *name).map(|one| &one.body) {
            Some(TypeBody::Fields { fields, .. }) => fields,
            _ => &[],
        }
    }

    fn pages(&self, reply: Option<&ValueKind>) -> Option<Pages> {
        let fields = self.fields(reply?);
        fields.iter().find(|field| field.name == "next")?;
        let cursor =
            self.parameters("query").into_iter().find(|one| ["after", "before"].contains(&&*one.name))?;
        let lists = fields.iter().filter_map(|field| match &field.kind {
            ValueKind::List(kind) => Some((field.name.clone(), (**kind).clone())),
            _ => None,
        });
        let mut lists: Vec<_> = lists.collect();
        let items = if lists.len() == 1 { lists.pop() } else { None };
        Some(Pages { cursor: cursor.name, items })
    }
}
