//! A refusal as a record: for one item of a batch, or for a whole request in a format without an error form of its own.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Problem;

/// Reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Refused)]
pub struct RefusedView {
    /// Stable error code for programs.
    #[schema(value_type = String, example = "invalid_field")]
    pub(crate) code: Cow<'static, str>,
    /// Reason in plain words.
    pub(crate) detail: String,
    /// Path of the offending field; for an item of a batch, relative to the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// Suggested remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Seconds to wait before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u32>,
    /// Id of the request, as in the log; absent for an item of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
}

impl RefusedView {
    /// Shows a refusal. `called` maps an operation to its name in the face.
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
