//! The value of a field that the record's table has no column for.

use diesel::{
    IntoSql,
    deserialize::{self, FromSql, FromSqlRow},
    dsl::AsExprOf,
    pg::{Pg, PgValue},
    sql_types::Bool,
};

/// Read in the field's place; becomes the field's empty value.
#[derive(Clone, Copy, Debug, FromSqlRow)]
pub struct Computed;

/// What is selected for it: a constant that is bound, so that the statement stays one that can be
/// prepared.
pub(crate) type ComputedSql = AsExprOf<bool, Bool>;

pub(crate) fn computed() -> ComputedSql {
    false.into_sql::<Bool>()
}

impl FromSql<Bool, Pg> for Computed {
    fn from_sql(_: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self)
    }
}

impl From<Computed> for String {
    fn from(_: Computed) -> Self {
        Self::new()
    }
}

impl From<Computed> for Option<String> {
    fn from(_: Computed) -> Self {
        None
    }
}

impl<T> From<Computed> for Vec<T> {
    fn from(_: Computed) -> Self {
        Self::new()
    }
}
