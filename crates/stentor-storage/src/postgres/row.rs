//! PostgreSQL's rows under the statements that both engines share.

use tokio_postgres::types::{FromSql, Type, WrongType};

use super::fault::words;
use crate::sql::{Done, SqlError, SqlRow, Value, damaged};

/// A row that was read.
pub(super) struct PostgresRow<'a>(pub(super) &'a tokio_postgres::Row);

impl PostgresRow<'_> {
    fn raw<'r, T: FromSql<'r>>(&'r self, at: usize) -> Done<T> {
        self.0.try_get(at).map_err(|error| {
            // A wrong requested type is a mistake of the statement; any other error is caused by the value.
            let is_ours = std::error::Error::source(&error).is_none_or(|source| source.is::<WrongType>());
            if is_ours { SqlError::Postgres(error) } else { damaged(&words(&error)) }
        })
    }
}

impl SqlRow for PostgresRow<'_> {
    fn maybe_int(&self, at: usize) -> Done<Option<i64>> {
        self.raw::<Option<Whole>>(at).map(|whole| whole.map(|whole| whole.0))
    }

    fn maybe_bool(&self, at: usize) -> Done<Option<bool>> {
        self.raw(at)
    }

    fn maybe_str(&self, at: usize) -> Done<Option<&str>> {
        self.raw(at)
    }

    fn maybe_bytes(&self, at: usize) -> Done<Option<&[u8]>> {
        self.raw(at)
    }

    fn any(&self, at: usize) -> Done<Value<'_>> {
        Ok(match *self.0.columns()[at].type_() {
            Type::BOOL => self.maybe_bool(at)?.into(),
            Type::TEXT => self.maybe_str(at)?.into(),
            Type::BYTEA => self.maybe_bytes(at)?.into(),
            _ => self.maybe_int(at)?.into(),
        })
    }

    fn identity(&self, _: usize) -> i64 {
        0
    }

    fn ints(&self, at: usize) -> Done<Vec<i64>> {
        self.raw(at)
    }

    fn strs(&self, at: usize) -> Done<Vec<&str>> {
        self.raw(at)
    }
}

/// A whole number of any width.
struct Whole(i64);

impl<'r> FromSql<'r> for Whole {
    fn from_sql(ty: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        match *ty {
            Type::INT2 => i16::from_sql(ty, raw).map(|number| Self(number.into())),
            Type::INT4 => i32::from_sql(ty, raw).map(|number| Self(number.into())),
            _ => i64::from_sql(ty, raw).map(Self),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT2, Type::INT4, Type::INT8].contains(ty)
    }
}
