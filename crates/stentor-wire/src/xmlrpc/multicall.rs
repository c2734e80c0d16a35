//! `system.multicall`: many calls in one, and their outcomes in order.

use super::{Call, RpcFault, RpcOutcome};
use crate::{Value, WireError};

/// The name of the method.
pub const MULTICALL: &str = "system.multicall";

/// Packs calls into one.
#[must_use]
pub fn multicall(calls: &[Call]) -> Call {
    let packed = calls.iter().map(|call| {
        Value::Record(vec![
            ("methodName".into(), Value::Text(call.method.clone())),
            ("params".into(), Value::List(call.params.clone())),
        ])
    });
    Call { method: MULTICALL.into(), params: vec![Value::List(packed.collect())] }
}

/// Unpacks the calls. A multicall within a multicall gets a fault of its own, and so does an entry that is no call; the others are still
/// made.
pub fn calls_of_multicall(call: &Call) -> Result<Vec<Result<Call, RpcFault>>, WireError> {
    let [Value::List(packed)] = &call.params[..] else {
        return Err(WireError::Unexpected("one array of calls is wanted".into()));
    };
    let unpack = |one: &Value| {
        let wrong = |text: &str| RpcFault { code: super::CODE_WRONG_PARAMS, text: text.into() };
        let method = one.get("methodName").and_then(Value::as_text);
        match (method, one.get("params")) {
            (Some(MULTICALL), _) => Err(wrong("a multicall within a multicall")),
            (Some(method), Some(Value::List(params))) => {
                Ok(Call { method: method.into(), params: params.clone() })
            }
            _ => Err(wrong("methodName and params are wanted")),
        }
    };
    Ok(packed.iter().map(unpack).collect())
}

/// Packs outcomes into one response: each value in an array of one element, each fault unchanged.
#[must_use]
pub fn multicall_result(outcomes: Vec<RpcOutcome>) -> Value {
    let pack = |outcome: RpcOutcome| match outcome {
        Ok(value) => Value::List(vec![value]),
        Err(fault) => fault.to_value(),
    };
    Value::List(outcomes.into_iter().map(pack).collect())
}

/// Unpacks the outcomes of a response.
pub fn results_of_multicall(answer: &Value) -> Result<Vec<RpcOutcome>, WireError> {
    let Value::List(packed) = answer else { return Err(WireError::missing("an array of results")) };
    let unpack = |one: &Value| match one {
        Value::List(values) if values.len() == 1 => Ok(Ok(values[0].clone())),
        other => RpcFault::of_value(other).map(Err).ok_or_else(|| WireError::missing("a result or a fault")),
    };
    packed.iter().map(unpack).collect()
}
