//! The value of a field without a column in the record's table.

use diesel::{
    IntoSql,
    deserialize::{self, FromSql, FromSqlRow},
    dsl::AsExprOf,
    pg::{Pg, PgValue},
    sql_types::Bool,
};

/// The value that is selected instead of a column. It converts to the empty value of the field.
#[derive(Clone, Copy, Debug, FromSqlRow)]
pub struct Computed;

/// The type of the expression that is selected instead of a column. The expression is a bound
/// constant: the statement can still be prepared.
pub(crate) type ComputedSql = AsExprOf<bool, Bool>;

pub(crate) fn computed() -> ComputedSql {
    false.into_sql::<Bool>()
}

impl FromSql<Bool, Pg> for Computed {
    fn from_sql(_: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self)
    }
}

impl From<Computed> for bool {
    fn from(_: Computed) -> Self {
        false
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
