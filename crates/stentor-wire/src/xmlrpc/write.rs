//! Writing of calls and responses.

use super::{Call, RpcOutcome};
use crate::xml::Writer;
use crate::{Value, WireError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Writes a call.
pub fn write_call(call: &Call) -> Result<Vec<u8>, WireError> {
    let mut writer = Writer::document();
    writer.open("methodCall")?;
    writer.leaf("methodName", &call.method)?;
    writer.open("params")?;
    call.params.iter().try_for_each(|value| param(&mut writer, value))?;
    Ok(writer.finish())
}

/// Writes the outcome of a call.
pub fn write_response(outcome: &RpcOutcome) -> Result<Vec<u8>, WireError> {
    let mut writer = Writer::document();
    writer.open("methodResponse")?;
    match outcome {
        Ok(value) => {
            writer.open("params")?;
            param(&mut writer, value)?;
        }
        Err(fault) => {
            writer.open("fault")?;
            write_value(&mut writer, &fault.to_value())?;
        }
    }
    Ok(writer.finish())
}

fn param(writer: &mut Writer, value: &Value) -> Result<(), WireError> {
    writer.open("param")?;
    write_value(writer, value)?;
    writer.close();
    Ok(())
}

fn write_value(writer: &mut Writer, value: &Value) -> Result<(), WireError> {
    writer.open("value")?;
    match value {
        Value::Nil => writer.leaf("nil", "")?,
        Value::Bool(flag) => writer.leaf("boolean", if *flag { "1" } else { "0" })?,
        Value::Int(number) => {
            let name = if i32::try_from(*number).is_ok() { "int" } else { "i8" };
            writer.leaf(name, &number.to_string())?;
        }
        // Rust prints no exponents, and XML-RPC has none.
        Value::Double(number) if number.is_finite() => writer.leaf("double", &number.to_string())?,
        Value::Double(_) => return Err(WireError::Unrepresentable("an infinite number")),
        Value::Text(text) => writer.leaf("string", text)?,
        Value::Bytes(bytes) => writer.leaf("base64", &base64(bytes))?,
        Value::DateTime(text) => writer.leaf("dateTime.iso8601", text)?,
        Value::List(values) => {
            writer.open("array")?;
            writer.open("data")?;
            values.iter().try_for_each(|value| write_value(writer, value))?;
            writer.close();
            writer.close();
        }
        Value::Record(fields) => {
            writer.open("struct")?;
            for (name, value) in fields {
                writer.open("member")?;
                writer.leaf("name", name)?;
                write_value(writer, value)?;
                writer.close();
            }
            writer.close();
        }
    }
    writer.close();
    Ok(())
}

/// Encodes bytes as base64.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
