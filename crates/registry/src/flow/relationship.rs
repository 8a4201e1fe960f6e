//! Common code of the relationships. Their rows are found by key. Only the period and the bounds of
//! a row can change.

use authority_model::{
    record::{ByIdRequest, Deleted, Record, RecordRequest, RpcRequest},
    validate::{Validate, Violations},
    wire::Time,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use diesel::{QueryResult, result::OptionalExtension};
use tonic::{Request, Response};

use super::{
    entity::RecordRow,
    error::Error,
    operations::{Reply, or_not_found},
    queries::{Queries, Save},
    registry::Registry,
    version::tagged,
};
use authority_api::identity::{Caller, caller};
use authority_ids::TenantId;
use authority_store::{self as store, Db};

/// A relationship and the lookup of its row by key.
pub(crate) trait Related: RecordRow {
    type Key: Send + Sync + 'static;

    /// Returns the ID of the row with this key, in the caller's tenant.
    fn id_of(
        db: &mut Db,
        within: Option<&TenantId>,
        key: &Self::Key,
    ) -> impl Future<Output = QueryResult<String>> + Send;
}

impl Registry {
    /// Returns the row with this key. `name` is the key as the client wrote it.
    pub(crate) async fn get_related<R: Related>(
        &self,
        caller: Caller,
        key: R::Key,
        name: String,
    ) -> Reply<R> {
        let whose = caller.scope();
        let row = self.store.read_tx(&whose, async move |db| {
            let id = known::<R>(db, &caller, &key, &name).await?;
            or_not_found(R::find(db, caller.tenant(), &id, false).await, &name)
        });
        let mut row = row.await?;
        row.warn();
        Ok(tagged(Response::new(row)))
    }

    /// Changes the row with this key. `key` includes the text that the client wrote. Problems of
    /// other fields are reported even if there is no such row.
    pub(crate) async fn update_related<C>(
        &self,
        call: Request<C>,
        key: Result<(<C::Record as Related>::Key, String), Error>,
    ) -> Reply<C::Record>
    where
        C: RecordRequest<Record: Related + Save> + ByIdRequest + Validate + RpcRequest,
    {
        let caller = caller(&call)?;
        let mut faults = Violations::default();
        call.get_ref().validate(&mut faults);
        let id = match (key, Error::unless_clean(faults)) {
            (Err(fault), _) | (_, Err(fault)) => Err(fault),
            (Ok((key, name)), Ok(())) => {
                let whose = caller.scope();
                let find =
                    async move |db: &mut Db| known::<C::Record>(db, &caller, &key, &name).await;
                self.store.read_tx(&whose, find).await
            }
        };
        self.update_at(call, id).await
    }

    /// Erases the row. Its history stays.
    pub(crate) async fn remove_related<A>(
        &self,
        caller: Caller,
        key: <A::Record as Related>::Key,
        name: String,
    ) -> Reply<A>
    where
        A: Deleted<Record: Related>,
    {
        let whose = caller.scope();
        let gone = self.store.write_tx(&whose, async move |db| {
            let id = known::<A::Record>(db, &caller, &key, &name).await?;
            let row = or_not_found(A::Record::lock(db, caller.tenant(), &id).await, &name)?;
            A::Record::erase(db, &row).await.map_err(store::Error::of_deletion)?;
            Ok::<_, Error>(row.id().to_owned())
        });
        let id = gone.await?;
        self.wait_for_graph::<A::Record>().await;
        Ok(Response::new(A::of(id, None)))
    }
}

/// Refuses to remove the beginning of a period.
pub(crate) fn check_beginning(field: &str, beginning: Option<Time>) -> Result<(), Error> {
    match beginning {
        Some(_) => Ok(()),
        None => Err(Error::field(field, "can't be removed; set a time")),
    }
}

async fn known<R: Related>(
    db: &mut Db,
    caller: &Caller,
    key: &R::Key,
    name: &str,
) -> Result<String, Error> {
    let id = R::id_of(db, caller.tenant(), key).await.optional()?;
    id.ok_or_else(|| Error::NotFound { kind: R::KIND, id: name.to_owned() })
}

/// A key of two parts, and the key as one text, for messages.
pub(crate) type NamedPair = ((String, String), String);

/// Returns the key from the query or the path segment. The segment is base64url of `first|second`.
pub(crate) fn pair(
    segment: &str,
    names: (&str, &str),
    first: Option<String>,
    second: Option<String>,
) -> Result<NamedPair, Error> {
    let named = |first: &str, second: &str| {
        let key = (first.to_owned(), second.to_owned());
        (key, format!("{first}|{second}"))
    };
    if let (Some(first), Some(second)) = (first, second) {
        return Ok(named(&first, &second));
    }
    let decoded = URL_SAFE_NO_PAD.decode(segment.trim_end_matches('=')).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let parts = text.as_deref().filter(|text| !text.contains('\0'));
    match parts.and_then(|text| text.split_once('|')) {
        Some((first, second)) if !first.is_empty() && !second.is_empty() => {
            Ok(named(first, second))
        }
        _ => {
            let (first, second) = names;
            Err(Error::field(
                "id",
                format!(
                    "is not base64url of `{first}|{second}`, and the query does not give both \
                     `{first}` and `{second}`"
                ),
            ))
        }
    }
}

/// Returns the tenant of the row that a relationship belongs to.
pub(crate) async fn tenant_of<R: RecordRow>(
    db: &mut Db,
    within: Option<&TenantId>,
    id: &str,
) -> QueryResult<Option<String>> {
    let row = R::by_id(db, within, id).await.optional()?;
    Ok(row.map(|row| row.tenant_id().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: (&str, &str) = ("team_id", "principal_id");

    #[test]
    fn a_pair_is_read_from_the_query_or_the_segment() {
        let given = |segment: &str, first: Option<&str>, second: Option<&str>| {
            pair(segment, NAMES, first.map(str::to_owned), second.map(str::to_owned)).ok()
        };
        let both = Some((("a".to_owned(), "b|c".to_owned()), "a|b|c".to_owned()));
        assert_eq!(given("item", Some("a"), Some("b|c")), both);
        let segment = URL_SAFE_NO_PAD.encode("a|b|c");
        assert_eq!(given(&segment, None, None), both);
        assert_eq!(given(&segment, Some("a"), None), both);
        for broken in ["", "!!", "item", "YQ", &URL_SAFE_NO_PAD.encode("|b")] {
            assert_eq!(given(broken, None, None), None, "{broken}");
        }
    }
}
