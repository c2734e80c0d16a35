//! Introspection and multicall of an XML-RPC face: the methods that begin with `system.`.

use super::ServerWork;
use crate::subject::dialect::{METHOD_PREFIX, of_value, to_value};
use stentor_wire::xmlrpc::{
    CODE_NO_SUCH_METHOD, CODE_WRONG_PARAMS, Call, MULTICALL, RpcFault, RpcOutcome, calls_of_multicall,
    multicall_result, read_call, write_response,
};
use stentor_wire::{DocumentLimits, Value, WireError};

const LIST: &str = "system.listMethods";
const SIGNATURE: &str = "system.methodSignature";

/// Answers a call of such a method; `None` for any other.
pub(super) fn answer(work: &ServerWork, body: &[u8]) -> Option<Result<Vec<u8>, WireError>> {
    let call = read_call(body, &DocumentLimits::default()).ok()?;
    let outcome = match call.method.as_str() {
        LIST => {
            Ok(Value::List([method(work).as_str(), LIST, SIGNATURE, MULTICALL].map(Value::from).to_vec()))
        }
        SIGNATURE => signature(work, &call),
        MULTICALL => return Some(several(work, &call)),
        _ => return None,
    };
    Some(write_response(&outcome))
}

fn method(work: &ServerWork) -> String {
    format!("{METHOD_PREFIX}{}", work.op.word())
}

/// Returns the signature of a method: its return type and its parameters.
fn signature(work: &ServerWork, call: &Call) -> RpcOutcome {
    match &call.params[..] {
        [Value::Text(name)] if *name == method(work) => {
            Ok(Value::List(vec![Value::List(["struct", "struct"].map(Value::from).to_vec())]))
        }
        _ => {
            Err(RpcFault { code: CODE_WRONG_PARAMS, text: "the name of one of our methods is wanted".into() })
        }
    }
}

fn several(work: &ServerWork, call: &Call) -> Result<Vec<u8>, WireError> {
    let outcomes = calls_of_multicall(call)?.into_iter().map(|one| one.and_then(|one| single(work, one)));
    write_response(&Ok(multicall_result(outcomes.collect())))
}

fn single(work: &ServerWork, call: Call) -> RpcOutcome {
    if call.method != method(work) {
        return Err(RpcFault { code: CODE_NO_SUCH_METHOD, text: "there is no such method".into() });
    }
    let wrong = |text: String| RpcFault { code: CODE_WRONG_PARAMS, text };
    let [value] = &call.params[..] else { return Err(wrong("one parameter is wanted".into())) };
    let request = of_value(value).map_err(|error| wrong(error.to_string()))?;
    let answer = work.do_it(request).ok_or_else(|| wrong("this request is not supported".into()))?;
    Ok(to_value(&answer))
}
