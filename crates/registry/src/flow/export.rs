//! Exports of records. They run the list's own query page by page, up to the records that existed
//! at the start.

use std::sync::Arc;

use authority_model::{
    record::{Exported, Listing, Record, RpcRequest},
    service::Replies,
    validate::Validate,
    wire::Time,
};
use tonic::Request;

use super::{
    entity::RecordRow,
    error::Error,
    page::{Window, place_of},
    registry::Registry,
};
use authority_api::{
    error::ApiError,
    identity::{Caller, Pages, admitted},
    named_tenant,
    page_token::PageTokens,
};

/// The number of records in memory at a time. Policies and schemas can be large.
const PAGE: usize = 50;

impl Registry {
    pub(crate) async fn export<A, Q>(&self, call: Request<Q>) -> Replies<A>
    where
        A: Exported<Record: RecordRow>,
        Q: Into<<A::Record as RecordRow>::List> + Validate + RpcRequest,
    {
        let (caller, asked) = admitted(call)?;
        let by: <A::Record as RecordRow>::List = asked.into();
        let tokens = PageTokens::of_export::<Q>(&self.keys, &caller, &by);
        let after = Window::of(by.page(), &tokens)?.after;
        named_tenant::known(&self.store, &caller, by.page().tenant_id).await?;
        let token = by.page().token.to_owned();
        let pages = Records::<A> {
            registry: self.clone(),
            caller: caller.clone(),
            by: Arc::new(by),
            tokens,
            after,
            token,
            began: self.clock.now().into(),
            over: false,
        };
        Ok(self.exports.stream(caller, pages).await?)
    }
}

struct Records<A: Exported<Record: RecordRow>> {
    registry: Registry,
    caller: Caller,
    by: Arc<<A::Record as RecordRow>::List>,
    tokens: PageTokens,
    after: Option<(Time, String)>,
    /// The token to continue after the last line.
    token: String,
    /// Records created later are not included.
    began: Time,
    over: bool,
}

impl<A: Exported<Record: RecordRow>> Pages for Records<A> {
    type Line = A;

    async fn next(&mut self) -> Result<Vec<A>, ApiError> {
        if self.over {
            return Ok(Vec::new());
        }
        let window = Window { size: PAGE, after: self.after.take() };
        let (by, caller) = (Arc::clone(&self.by), self.caller.clone());
        let read = self.registry.store.read_tx(&self.caller.scope(), async move |db| {
            Ok::<_, Error>(A::Record::list(db, &caller, &by, &window).await?)
        });
        let (mut rows, _) = read.await?;
        self.over = rows.len() <= PAGE;
        rows.truncate(PAGE);
        let found = rows.len();
        rows.retain(|row| row.created_at().is_none_or(|at| at <= self.began));
        self.over |= rows.len() < found;
        self.after = rows.last().and_then(|row| Some((row.created_at()?, row.id().to_owned())));
        rows.iter_mut().for_each(RecordRow::warn);
        A::Record::fill_computed(&self.registry, &self.caller, &mut rows).await?;
        let mut lines = Vec::with_capacity(rows.len());
        for row in rows {
            if let Some(token) = place_of(&row, &self.tokens) {
                self.token = token;
            }
            lines.push(A::of(Some(row), self.token.clone()));
        }
        Ok(lines)
    }

    fn end(&self) -> A {
        A::of(None, self.token.clone())
    }
}
