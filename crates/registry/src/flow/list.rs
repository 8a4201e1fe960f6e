//! Lists records of any type, one requested page at a time.

use authority_model::record::{ListResponse, Listing};
use tonic::{Request, Response};

use super::{
    entity::RecordRow,
    error::Error,
    operations::Reply,
    page::{Window, place_of},
    registry::Registry,
};
use authority_api::{identity::admitted, named_tenant, page, page_token::PageTokens};

impl Registry {
    pub(crate) async fn list<A>(&self, call: Request<<A::Record as RecordRow>::List>) -> Reply<A>
    where
        A: ListResponse,
        A::Record: RecordRow,
    {
        let (caller, by) = admitted(call)?;
        let tokens = PageTokens::of(&self.keys, &caller, &by);
        let window = Window::of(by.page(), &tokens)?;
        named_tenant::readable(by.page().tenant_id)?;
        let (whose, reader) = (caller.scope(), caller.clone());
        let read = self.store.read_tx(&whose, async move |db| {
            let found = A::Record::list(db, &reader, &by, &window).await;
            Ok::<_, Error>((found?, window))
        });
        let ((mut rows, total), window) = read.await?;
        let mut goes_on = page::cut(&mut rows, window.size);
        rows.iter_mut().for_each(RecordRow::warn);
        A::Record::fill_computed(self, &caller, &mut rows).await?;
        goes_on |= page::cut(&mut rows, window.size);
        let last = rows.last().filter(|_| goes_on);
        let next = last.and_then(|last| place_of(last, &tokens));
        let total = total.map(|total| i32::try_from(total).unwrap_or(i32::MAX));
        Ok(Response::new(A::of(rows, total, next)))
    }
}
