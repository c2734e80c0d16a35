//! Introspection: `system.listMethods`, `system.methodSignature` and `system.methodHelp`.

use stentor_wire::Value;
use stentor_wire::xmlrpc::{CODE_WRONG_PARAMS, Call, MULTICALL, RpcFault, RpcOutcome};

use super::fault::no_such_method;
use crate::contract::description::{OperationShape, description};
use crate::contract::shape::{FieldShape, RecordShape, Shape};

const LIST: &str = "system.listMethods";
const SIGNATURE: &str = "system.methodSignature";
const HELP: &str = "system.methodHelp";
/// The system methods with their signatures and descriptions.
const SYSTEM: [(&str, &[&str], &str); 4] = [
    (LIST, &["array"], "Lists all methods."),
    (SIGNATURE, &["array", "string"], "Lists the types of a method's result and parameters."),
    (HELP, &["string", "string"], "Describes a method and the fields of its struct."),
    (MULTICALL, &["array", "array"], "Calls several methods, each independently."),
];

/// Responds to a system method; `None` for other methods.
pub(super) fn answer(call: &Call) -> Option<RpcOutcome> {
    match call.method.as_str() {
        LIST => Some(Ok(Value::List(names().map(Value::from).collect()))),
        SIGNATURE => Some(named(call).and_then(signature)),
        HELP => Some(named(call).and_then(|name| help(name).map(Value::Text))),
        _ => None,
    }
}

/// Returns a page with all methods, for people.
#[must_use]
pub fn introspection() -> String {
    let about = "Methods of the XML-RPC face at `/rpc`, as `system.methodHelp` describes them.\n";
    let one = |name| format!("\n## {name}\n\n{}\n", help(name).unwrap_or_default());
    std::iter::once(about.to_owned()).chain(names().map(one)).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    let operations = description().operations.iter().map(|one| one.facts.name);
    operations.chain(SYSTEM.iter().map(|(name, ..)| *name))
}

fn named(call: &Call) -> Result<&str, RpcFault> {
    match &call.params[..] {
        [Value::Text(name)] => Ok(name),
        _ => Err(RpcFault { code: CODE_WRONG_PARAMS, text: "one name of a method is wanted".into() }),
    }
}

fn operation(name: &str) -> Option<&'static OperationShape> {
    description().operations.iter().find(|one| one.facts.name == name)
}

fn signature(name: &str) -> RpcOutcome {
    let kinds = |kinds: &[&str]| Value::List(kinds.iter().map(|kind| Value::from(*kind)).collect());
    if let Some((_, system, _)) = SYSTEM.iter().find(|(known, ..)| *known == name) {
        return Ok(Value::List(vec![kinds(system)]));
    }
    let one = operation(name).ok_or_else(|| no_such_method(name))?;
    let mut all = vec![kinds(&["struct", "struct"])];
    if one.request.fields.iter().all(|field| !field.is_required) {
        all.push(kinds(&["struct"]));
    }
    Ok(Value::List(all))
}

fn help(name: &str) -> Result<String, RpcFault> {
    if let Some((_, _, about)) = SYSTEM.iter().find(|(known, ..)| *known == name) {
        return Ok((*about).to_owned());
    }
    let one = operation(name).ok_or_else(|| no_such_method(name))?;
    let mut text = one.facts.sentences();
    text.push_str(&listed("Takes", &one.request));
    text.push_str(&listed("Returns", &one.reply));
    Ok(text)
}

fn listed(verb: &str, record: &RecordShape) -> String {
    if record.fields.is_empty() {
        return format!("\n\n{verb} an empty struct.");
    }
    let line = |field: &FieldShape| {
        let kind = kind(&field.shape);
        let optional = if field.is_required { "" } else { ", optional" };
        let about = if field.about.is_empty() { String::new() } else { format!(": {}", field.about) };
        format!("\n- {} ({kind}{optional}){about}", field.name)
    };
    let lines: String = record.fields.iter().map(line).collect();
    format!("\n\n{verb} a struct:\n{lines}")
}

fn kind(shape: &Shape) -> String {
    match shape {
        Shape::Text => "string".into(),
        Shape::Int => "int".into(),
        Shape::Double => "double".into(),
        Shape::Bool => "boolean".into(),
        Shape::Json => "any value".into(),
        Shape::List(inner) => format!("array of {}", kind(inner)),
        Shape::Map(inner) => format!("struct of {}", kind(inner)),
        Shape::Record(name) => format!("struct {name}"),
    }
}
