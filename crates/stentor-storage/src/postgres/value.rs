//! Values of parameters in PostgreSQL's form: each takes the width of its column.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::sql::Value;
use crate::texts::has_nul;

/// Returns true if a text of a value has a NUL, which no text of PostgreSQL can hold.
pub(super) fn holds_nul(value: &Value<'_>) -> bool {
    match value {
        Value::Text(text) => has_nul(text),
        Value::Texts(texts) => texts.iter().flatten().any(|text| has_nul(text)),
        _ => false,
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => put_int(*number, ty, out),
            Self::Bool(word) => word.to_sql(ty, out),
            Self::Text(text) => text.as_ref().to_sql(ty, out),
            Self::Bytes(bytes) => bytes.as_ref().to_sql(ty, out),
            Self::Ints(numbers) => put_ints(numbers, ty, out),
            Self::Blobs(blobs) => blobs.to_sql(ty, out),
            Self::Texts(texts) => texts.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn put_int(number: i64, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
    match *ty {
        Type::INT2 => i16::try_from(number)?.to_sql(ty, out),
        Type::INT4 => i32::try_from(number)?.to_sql(ty, out),
        Type::BOOL => (number != 0).to_sql(ty, out),
        _ => number.to_sql(ty, out),
    }
}

fn put_ints(
    numbers: &[Option<i64>],
    ty: &Type,
    out: &mut BytesMut,
) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
    match *ty {
        Type::INT2_ARRAY => {
            let narrow = |number: &Option<i64>| number.map(i16::try_from).transpose();
            numbers.iter().map(narrow).collect::<Result<Vec<_>, _>>()?.to_sql(ty, out)
        }
        Type::INT4_ARRAY => {
            let narrow = |number: &Option<i64>| number.map(i32::try_from).transpose();
            numbers.iter().map(narrow).collect::<Result<Vec<_>, _>>()?.to_sql(ty, out)
        }
        _ => numbers.to_sql(ty, out),
    }
}
