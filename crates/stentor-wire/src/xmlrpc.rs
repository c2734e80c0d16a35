//! XML-RPC: calls, responses and faults, and several calls in one by `system.multicall`.
//!
//! Integers of more than 32 bits are written as `i8` and nothing as `nil`, as the common extensions have it. Both are read with and without
//! the prefix of Apache's extensions.

mod multicall;
mod read;
mod write;

use crate::Value;

pub use multicall::{MULTICALL, calls_of_multicall, multicall, multicall_result, results_of_multicall};
pub use read::{read_call, read_response};
pub use write::{write_call, write_response};

pub(crate) use write::base64;

/// A call of a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Vec<Value>,
}

/// The outcome of a call.
pub type RpcOutcome = Result<Value, RpcFault>;

/// The error of a failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fault {code}: {text}")]
pub struct RpcFault {
    /// A number that the caller may know.
    pub code: i32,
    /// A sentence.
    pub text: String,
}

/// There is no such method.
pub const CODE_NO_SUCH_METHOD: i32 = -32601;
/// The method cannot be called with these parameters.
pub const CODE_WRONG_PARAMS: i32 = -32602;

impl RpcFault {
    /// Converts it to a value, as in documents.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Record(vec![
            ("faultCode".into(), Value::Int(self.code.into())),
            ("faultString".into(), Value::Text(self.text.clone())),
        ])
    }

    /// Converts a value to a fault; `None` if it is none.
    #[must_use]
    pub fn of_value(value: &Value) -> Option<Self> {
        let code = i32::try_from(value.get("faultCode")?.as_int()?).ok()?;
        Some(Self { code, text: value.get("faultString")?.as_text()?.to_owned() })
    }
}
