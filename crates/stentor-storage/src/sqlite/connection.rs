//! SQLite's connection under the statements that both engines share.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::time::Duration;

use rusqlite::types::{FromSqlError, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::damage;
use crate::sql::dialect::{self, Dialect};
use crate::sql::{self, Done, Sql, SqlError, SqlRow, Value, damaged};

impl Sql for Connection {
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Done<usize> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(values))?)
    }

    fn query(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: &mut dyn FnMut(&sql::Row<'_>) -> Done<ControlFlow<()>>,
    ) -> Done<()> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if read(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::SQLITE
    }

    fn changes(&self) -> u64 {
        self.total_changes()
    }

    fn portion_time(&self) -> Duration {
        Duration::from_millis(25)
    }

    fn begin_part(&self) -> Done<usize> {
        Sql::execute(self, "SAVEPOINT part", &[])
    }

    fn keep_part(&self) -> Done<()> {
        Sql::execute(self, "RELEASE part", &[]).map(drop)
    }

    fn undo_part(&self, _: usize) -> Done<()> {
        Sql::execute(self, "ROLLBACK TO part", &[])?;
        self.keep_part()
    }

    fn note_damage(&self, table: &'static str, key: i64, identity: i64, error: &SqlError) {
        damage::note(self, table, key, identity, error);
    }

    fn force(&self, table: &str, condition: &str, sql: &str, values: &[Value<'_>]) -> Done<usize> {
        match Sql::execute(self, sql, values) {
            Err(error) if error.is_damage() => {
                damage::mend_kinds(self, table, condition)?;
                Sql::execute(self, sql, values)
            }
            done => done,
        }
    }
}

impl SqlRow for Row<'_> {
    fn maybe_int(&self, at: usize) -> Done<Option<i64>> {
        self.get_ref(at)?.as_i64_or_null().map_err(wrong_kind)
    }

    fn maybe_bool(&self, at: usize) -> Done<Option<bool>> {
        Ok(self.maybe_int(at)?.map(|number| number != 0))
    }

    fn maybe_str(&self, at: usize) -> Done<Option<&str>> {
        self.get_ref(at)?.as_str_or_null().map_err(wrong_kind)
    }

    fn maybe_bytes(&self, at: usize) -> Done<Option<&[u8]>> {
        self.get_ref(at)?.as_blob_or_null().map_err(wrong_kind)
    }

    fn any(&self, at: usize) -> Done<Value<'_>> {
        Ok(match self.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Text(text) => {
                str::from_utf8(text).map_err(|_| damaged("a text that is not UTF-8"))?.into()
            }
            ValueRef::Blob(bytes) => bytes.into(),
            ValueRef::Real(_) => return Err(damaged("a fraction where none can be")),
        })
    }

    fn identity(&self, at: usize) -> i64 {
        let mut hasher = DefaultHasher::new();
        let value = self.get_ref(at).ok().and_then(|value| value.as_bytes_or_null().ok());
        value.flatten().hash(&mut hasher);
        hasher.finish().cast_signed()
    }
}

fn wrong_kind(error: FromSqlError) -> SqlError {
    damaged(&error.to_string())
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Ints(numbers) => return as_list(serde_json::to_string(numbers)),
            Self::Texts(texts) => return as_list(serde_json::to_string(texts)),
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Bool(word) => ValueRef::Integer((*word).into()),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Blobs(_) => {
                let why = "SQLite has no lists of blobs".into();
                return Err(rusqlite::Error::ToSqlConversionFailure(why));
            }
        }))
    }
}

/// Returns a list as `json_each` reads it.
fn as_list(written: serde_json::Result<String>) -> rusqlite::Result<ToSqlOutput<'static>> {
    let list = written.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    Ok(ToSqlOutput::Owned(list.into()))
}
