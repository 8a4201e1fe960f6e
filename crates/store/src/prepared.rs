//! SQL texts that each connection prepares once.

use std::{borrow::Cow, marker::PhantomData};

use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    serialize::ToSql,
    sql_types::{HasSqlType, Untyped},
};

/// Builds a query from SQL text, like `diesel::sql_query`, but prepares it once per connection.
///
/// `diesel::sql_query` parses and plans its text at each call. Use this for statements that run
/// many times a second. A connection keeps the plan of each text: use only a few different texts.
pub fn prepared(sql: impl Into<Cow<'static, str>>) -> Prepared<NoBinds> {
    Prepared { sql: sql.into(), binds: NoBinds }
}

/// A text with the values of its parameters.
pub struct Prepared<B> {
    sql: Cow<'static, str>,
    binds: B,
}

/// An empty list of values.
pub struct NoBinds;

/// A list of values with one more value.
pub struct Bind<B, V, S> {
    before: B,
    value: V,
    sql_type: PhantomData<S>,
}

impl<B> Prepared<B> {
    /// Adds the value of the next parameter. The first is `$1`.
    pub fn bind<S, V>(self, value: V) -> Prepared<Bind<B, V, S>> {
        let Self { sql, binds } = self;
        Prepared { sql, binds: Bind { before: binds, value, sql_type: PhantomData } }
    }
}

impl<B> Query for Prepared<B> {
    /// Rows are read by the names of their columns.
    type SqlType = Untyped;
}

/// Diesel identifies the query by its text.
impl<B> QueryId for Prepared<B> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<B: QueryFragment<Pg>> QueryFragment<Pg> for Prepared<B> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(&self.sql);
        self.binds.walk_ast(out)
    }
}

impl QueryFragment<Pg> for NoBinds {
    fn walk_ast<'b>(&'b self, _: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        Ok(())
    }
}

impl<B, V, S> QueryFragment<Pg> for Bind<B, V, S>
where
    B: QueryFragment<Pg>,
    V: ToSql<S, Pg>,
    Pg: HasSqlType<S>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.before.walk_ast(out.reborrow())?;
        out.push_bind_param_value_only(&self.value)
    }
}
