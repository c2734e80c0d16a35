//! A refusal as a record: of one thing among several, or of a whole request where a format has no form of its own for it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Problem;

/// Why it was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Refused)]
pub struct RefusedView {
    /// Stable word for programs.
    #[schema(value_type = String, example = "invalid_field")]
    pub(crate) code: Cow<'static, str>,
    /// Why, for a person.
    pub(crate) detail: String,
    /// Path of the offending field; of one thing among several, from that thing on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// When to come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u32>,
    /// The request, as in the log; not told of one thing among several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
}

impl RefusedView {
    /// Shows a refusal; `called` says how a face calls the operation that helps.
    pub(crate) fn new(problem: &Problem, called: impl FnOnce(&'static str) -> String) -> Self {
        Self {
            code: problem.code.as_str().into(),
            detail: problem.detail.to_string(),
            field: problem.field.clone(),
            hint: problem.hint_with(called).map(Cow::into_owned),
            retry_after_seconds: problem.retry_after_seconds,
            request_id: None,
        }
    }
}

impl From<Problem> for RefusedView {
    fn from(problem: Problem) -> Self {
        Self::new(&problem, str::to_owned)
    }
}
