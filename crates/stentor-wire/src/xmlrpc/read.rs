//! Reading of calls and responses.

use super::{Call, RpcFault, RpcOutcome};
use crate::xml::decode;
use crate::xml::pull::{Pull, Token, only_space};
use crate::{DocumentLimits, Value, WireError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// Namespace of Apache's extensions, of which `i8` and `nil` are understood.
const EXTENSIONS: &str = "http://ws.apache.org/xmlrpc/namespaces/extensions";

/// Reads a call.
pub fn read_call(bytes: &[u8], limits: &DocumentLimits) -> Result<Call, WireError> {
    let text = decode(bytes, limits)?;
    let mut pull = Pull::new(&text, limits);
    pull.named_child("methodCall")?;
    pull.named_child("methodName")?;
    let method = pull.text()?.trim().to_owned();
    if method.is_empty() {
        return Err(WireError::missing("a method"));
    }
    let mut params = Vec::new();
    if let Some(tag) = pull.child()? {
        expect(&tag.name, "params")?;
        while let Some(tag) = pull.child()? {
            expect(&tag.name, "param")?;
            params.push(wrapped_value(&mut pull)?);
        }
        pull.close()?;
    }
    pull.finish()?;
    Ok(Call { method, params })
}

/// Reads the outcome of a call.
pub fn read_response(bytes: &[u8], limits: &DocumentLimits) -> Result<RpcOutcome, WireError> {
    let text = decode(bytes, limits)?;
    let mut pull = Pull::new(&text, limits);
    pull.named_child("methodResponse")?;
    let tag = pull.child()?.ok_or_else(|| WireError::missing("params or fault"))?;
    let outcome = match tag.name.as_ref() {
        "params" => {
            pull.named_child("param")?;
            let value = wrapped_value(&mut pull)?;
            pull.close()?;
            Ok(value)
        }
        "fault" => {
            let fault = RpcFault::of_value(&wrapped_value(&mut pull)?);
            Err(fault.ok_or_else(|| WireError::missing("faultCode or faultString"))?)
        }
        other => return Err(WireError::unexpected(other, "params or fault")),
    };
    pull.close()?;
    pull.finish()?;
    Ok(outcome)
}

/// Reads the single value inside the current element, and that element's end.
fn wrapped_value(pull: &mut Pull) -> Result<Value, WireError> {
    pull.named_child("value")?;
    let value = value(pull)?;
    pull.close()?;
    Ok(value)
}

/// Reads the rest of a `value` after its start: typed, or text without a type.
fn value(pull: &mut Pull) -> Result<Value, WireError> {
    let mut text = Cow::Borrowed("");
    loop {
        match pull.token()? {
            Token::Text(piece) if text.is_empty() => text = piece,
            Token::Text(piece) => text.to_mut().push_str(&piece),
            Token::End => return Ok(Value::Text(text.into_owned())),
            Token::Eof => return Err(WireError::missing("the end of a value")),
            Token::Start(tag) => {
                only_space(&text)?;
                let is_known = tag.namespace.as_deref().is_none_or(|namespace| namespace == EXTENSIONS);
                let value = if is_known { typed(&tag.name, pull)? } else { return Err(strange(&tag.name)) };
                pull.close()?;
                return Ok(value);
            }
        }
    }
}

fn typed(name: &str, pull: &mut Pull) -> Result<Value, WireError> {
    match name {
        "array" => array(pull),
        "struct" => record(pull),
        _ => scalar(name, &pull.text()?),
    }
}

fn scalar(name: &str, text: &str) -> Result<Value, WireError> {
    let wrong = || WireError::number(text);
    Ok(match name {
        "string" => Value::Text(text.to_owned()),
        "int" | "i4" => Value::Int(text.trim().parse::<i32>().map_err(|_| wrong())?.into()),
        "i8" => Value::Int(text.trim().parse().map_err(|_| wrong())?),
        "boolean" => match text.trim() {
            "0" => Value::Bool(false),
            "1" => Value::Bool(true),
            _ => return Err(wrong()),
        },
        "double" => {
            let number: f64 = text.trim().parse().map_err(|_| wrong())?;
            if number.is_finite() { Value::Double(number) } else { return Err(wrong()) }
        }
        "dateTime.iso8601" => Value::DateTime(text.trim().to_owned()),
        "base64" => Value::Bytes(bytes(text)?),
        "nil" => {
            only_space(text)?;
            Value::Nil
        }
        other => return Err(strange(other)),
    })
}

fn array(pull: &mut Pull) -> Result<Value, WireError> {
    pull.named_child("data")?;
    let mut values = Vec::new();
    while let Some(tag) = pull.child()? {
        expect(&tag.name, "value")?;
        values.push(value(pull)?);
    }
    pull.close()?;
    Ok(Value::List(values))
}

fn record(pull: &mut Pull) -> Result<Value, WireError> {
    let mut fields = Vec::new();
    while let Some(tag) = pull.child()? {
        expect(&tag.name, "member")?;
        pull.named_child("name")?;
        let name = pull.text()?.into_owned();
        fields.push((name, wrapped_value(pull)?));
    }
    Ok(Value::Record(fields))
}

/// Decodes bytes from base64; white space between the characters is common.
fn bytes(text: &str) -> Result<Vec<u8>, WireError> {
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(letters).map_err(|error| WireError::Malformed(format!("base64: {error}")))
}

fn expect(found: &str, wanted: &str) -> Result<(), WireError> {
    if found == wanted { Ok(()) } else { Err(WireError::unexpected(found, wanted)) }
}

fn strange(name: &str) -> WireError {
    WireError::unexpected(name, "a type of XML-RPC")
}
