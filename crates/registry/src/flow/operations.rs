//! The operations that all records share, except lists. Each operation checks the caller and the
//! request's rules, runs one transaction and responds.

use std::sync::Arc;

use authority_model::{
    record::{ByIdRequest, Deleted, Record, RecordRequest, RpcRequest},
    validate::{Validate, Violations},
    wire::FieldMask,
};
use diesel::{
    QueryResult,
    result::{Error::NotFound, OptionalExtension},
};
use tonic::{Request, Response, Status};

use super::{
    entity::{Entity, OnDelete, RecordRow, SoftDelete, Stops, Verb, WriteTx},
    error::Error,
    patch::{named_faults, with_cleared},
    queries::{End, Queries, Save},
    registry::Registry,
    version::{IfMatch, tagged},
};
use authority_api::{
    error::ApiError,
    idempotency::{self, Done, IdempotencyKey},
    identity::{Caller, admitted, caller},
};
use authority_ids::TenantId;
use authority_store::{self as store, Transact};

pub(crate) type Reply<T> = Result<Response<T>, Status>;

impl Registry {
    pub(crate) async fn create<C>(&self, call: Request<C>) -> Reply<C::Record>
    where
        C: RecordRequest<Record: RecordRow> + Validate + RpcRequest,
    {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request, mut found) = admit(call)?;
        let (mut row, _) = request.open();
        let key = key.map(|key| key.within(TenantId::parse(row.tenant_id()).ok().as_ref()));
        found.within(C::FIELD, |found| {
            row.reject_output_only(found);
            if let Some(state) = final_state(&row).filter(|_| !C::Record::may_begin_final()) {
                found.add(C::Record::STATE, format!("a new record cannot be `{state}`"));
            }
            row.defaults();
            row.validate_record(found);
        });
        let examined = examined::<C>(row.validate_with_store(self, &caller, None).await, found)?;
        if let Some(key) = key.as_ref().filter(|_| C::Record::IS_STOP) {
            self.free_ended::<C::Record>(&caller, key).await?;
        }
        let (now, by, destinations) =
            (self.clock.now(), caller.clone(), Arc::clone(&self.destinations));
        let made = self.idempotent(&caller, key, async move |db| {
            examined?;
            row.resolve_tenant(db, by.tenant()).await?;
            let slug = row.tenant_slug(db, by.tenant()).await?;
            row.stamp_created(row.new_id(&slug)?, by.actor.clone());
            let mut tx = WriteTx { db, caller: &by, now, destinations: &destinations };
            row.before_save(None, &mut tx).await?;
            let mut made = C::Record::insert(tx.db, &row).await?;
            row.after_insert(&mut made, &mut tx).await?;
            made.warn();
            Ok::<_, Error>(made)
        });
        let made = made.await?;
        self.wait_for_graph::<C::Record>().await;
        Ok(tagged(made.reply()))
    }

    pub(crate) async fn get<R: RecordRow>(
        &self,
        call: Request<impl ByIdRequest + Validate>,
    ) -> Reply<R> {
        let (caller, request) = admitted(call)?;
        let (id, deleted) = (R::address(request.id()), request.deleted());
        let whose = caller.scope();
        let row = self.store.read_tx(&whose, async move |db| {
            let row = R::find(db, caller.tenant(), &id, deleted).await;
            let row = row.optional()?.filter(|row| row.is_visible(&caller));
            or_not_found(row.ok_or(NotFound), &id)
        });
        let mut row = row.await?;
        row.warn();
        Ok(tagged(Response::new(row)))
    }

    /// Returns the response with its computed fields.
    pub(crate) async fn completed<R: RecordRow>(
        &self,
        caller: &Caller,
        mut answer: Response<R>,
    ) -> Reply<R> {
        R::fill_computed(self, caller, std::slice::from_mut(answer.get_mut())).await?;
        Ok(answer)
    }

    pub(crate) async fn update<C>(&self, call: Request<C>) -> Reply<C::Record>
    where
        C: RecordRequest<Record: RecordRow + Save> + ByIdRequest + Validate + RpcRequest,
    {
        let id = C::Record::address(call.get_ref().id());
        self.update_at(call, Ok(id)).await
    }

    /// Changes the record with this ID. An invalid ID is reported only if there is no other
    /// problem.
    pub(crate) async fn update_at<C>(
        &self,
        call: Request<C>,
        id: Result<String, Error>,
    ) -> Reply<C::Record>
    where
        C: RecordRequest<Record: RecordRow + Save> + ByIdRequest + Validate + RpcRequest,
    {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, mut request, mut faults) = admit(call)?;
        let is_trial = request.validate_only();
        let cleared = request.cleared();
        let (patch, mask) = request.open();
        let mask = with_cleared::<C>(&patch, mask, cleared, &mut faults);
        faults.within(C::FIELD, |faults| C::Record::reject_immutable(&mask, faults));
        named_faults::<C>(&patch, &mask, &mut faults);
        if id.is_err() {
            Error::unless_clean(std::mem::take(&mut faults))?;
        }
        let id = id?;
        let examined =
            examined::<C>(patch.validate_with_store(self, &caller, Some(&id)).await, faults)?;
        let (now, by, destinations) =
            (self.clock.now(), caller.clone(), Arc::clone(&self.destinations));
        let changed = self.idempotent(&caller, key, async move |db| {
            let was = or_not_found(C::Record::lock(db, by.tenant(), &id).await, &id)?;
            if_match.check(&was)?;
            changeable(&was)?;
            examined?;
            if mask.paths.is_empty() {
                return Ok::<_, Error>(was);
            }
            if by.tenant().is_some() {
                check_changes(&was, &patch, &mask)?;
            }
            let mut row = was.clone();
            row.merge(patch, &mask);
            // A cleared state would be set to the default, which may make the record active again.
            let of_state = |path: &String| path == C::Record::STATE;
            let named = mask.paths.iter().any(of_state);
            let stateless = named && row.state().is_empty();
            row.defaults();
            let mut faults = Violations::default();
            faults.within(C::FIELD, |faults| {
                row.validate(faults);
                row.validate_record(faults);
                if let Some(member) = mask.paths.iter().find(|path| stateless && of_state(path)) {
                    faults.add(member, "cannot be cleared; set a state");
                }
            });
            Error::unless_clean(faults)?;
            let mut tx = WriteTx { db, caller: &by, now, destinations: &destinations };
            row.before_save(Some(&was), &mut tx).await?;
            let mut saved = C::Record::save(db, &row).await?;
            saved.warn();
            if is_trial { Err(Error::tried(&saved)) } else { Ok(saved) }
        });
        let changed = match changed.await {
            Err(Error::Tried(row)) => return Ok(Response::new(Error::would_be(&row)?)),
            changed => changed?,
        };
        self.wait_for_graph::<C::Record>().await;
        Ok(tagged(changed.reply()))
    }

    pub(crate) async fn delete<A>(&self, call: Request<impl ByIdRequest + Validate>) -> Reply<A>
    where
        A: Deleted<Record: Entity>,
    {
        if let OnDelete::Refuse(code) = A::Record::ON_DELETE {
            caller(&call)?;
            return Err(Error::NeverDeleted(code).into());
        }
        let if_match = IfMatch::of(call.metadata());
        let (caller, request) = admitted(call)?;
        let id = A::Record::address(request.id());
        let (is_trial, tried) = (request.validate_only(), id.clone());
        let (now, whose, destinations) =
            (self.clock.now(), caller.scope(), Arc::clone(&self.destinations));
        let gone = self.store.write_tx(&whose, async move |db| {
            let row = or_not_found(A::Record::lock(db, caller.tenant(), &id).await, &id)?;
            if_match.check(&row)?;
            changeable(&row)?;
            let mut tx = WriteTx { db, caller: &caller, now, destinations: &destinations };
            row.before_delete(&mut tx).await?;
            let left = match A::Record::ON_DELETE {
                OnDelete::Erase => {
                    A::Record::erase(db, &row).await.map_err(store::Error::of_deletion)?;
                    None
                }
                OnDelete::End(state) => Some(A::Record::end(db, &row, state).await?),
                OnDelete::Refuse(code) => return Err(Error::NeverDeleted(code)),
            };
            if is_trial { Err(Error::tried(left.as_ref().unwrap_or(&row))) } else { Ok((id, left)) }
        });
        let (id, left) = match gone.await {
            Err(Error::Tried(row)) => {
                return Ok(Response::new(A::of(tried, Some(Error::would_be(&row)?))));
            }
            gone => gone?,
        };
        self.wait_for_graph::<A::Record>().await;
        Ok(Response::new(A::of(id, left)))
    }

    /// Deletes a record in any state. Its row stays.
    pub(crate) async fn soft_delete<A>(
        &self,
        call: Request<impl ByIdRequest + Validate>,
    ) -> Reply<A>
    where
        A: Deleted<Record: SoftDelete>,
    {
        let if_match = IfMatch::of(call.metadata());
        let (caller, request) = admitted(call)?;
        let id = A::Record::address(request.id());
        let (now, whose, destinations) =
            (self.clock.now(), caller.scope(), Arc::clone(&self.destinations));
        let gone = self.store.write_tx(&whose, async move |db| {
            let row = or_not_found(A::Record::lock(db, caller.tenant(), &id).await, &id)?;
            if_match.check(&row)?;
            let mut tx = WriteTx { db, caller: &caller, now, destinations: &destinations };
            row.before_delete(&mut tx).await?;
            let left = A::Record::soft_delete(db, &row).await?;
            Ok::<_, Error>((id, left))
        });
        let (id, left) = gone.await?;
        self.wait_for_graph::<A::Record>().await;
        Ok(Response::new(A::of(id, Some(left))))
    }

    /// Applies an operation's request to one record.
    pub(crate) async fn apply<V: Verb>(&self, call: Request<V>) -> Reply<V::Record> {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, request, mut faults) = admit(call)?;
        request.examine(&mut faults);
        Error::unless_clean(faults)?;
        let id = V::Record::address(request.id());
        let (now, by, destinations) =
            (self.clock.now(), caller.clone(), Arc::clone(&self.destinations));
        let done = self.idempotent(&caller, key, async move |db| {
            let was = or_not_found(V::Record::lock(db, by.tenant(), &id).await, &id)?;
            if_match.check(&was)?;
            let mut tx = WriteTx { db, caller: &by, now, destinations: &destinations };
            request.apply(was, &mut tx).await
        });
        let done = done.await?;
        self.wait_for_graph::<V::Record>().await;
        Ok(tagged(done.reply()))
    }

    /// Lifts a suspension of authority. `reason` reads the reason in the request.
    pub(crate) async fn lift<R: Stops, Q: RpcRequest + ByIdRequest + Validate>(
        &self,
        call: Request<Q>,
        reason: impl FnOnce(&Q) -> Option<String>,
    ) -> Reply<R> {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, request) = admitted(call)?;
        let (id, by, reason) = (R::address(request.id()), caller.clone(), reason(&request));
        let lifted = self.idempotent(&caller, key, async move |db| {
            let was = or_not_found(R::lock(db, by.tenant(), &id).await, &id)?;
            if_match.check(&was)?;
            changeable(&was)?;
            Ok(R::lift(db, &was, &by.actor, reason.as_deref()).await?)
        });
        let lifted = lifted.await?;
        self.wait_for_graph::<R>().await;
        Ok(tagged(lifted.reply()))
    }

    /// Runs `work` in one transaction, at most once for each idempotency key.
    pub(crate) async fn idempotent<M, F>(
        &self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        work: F,
    ) -> Result<Done<M>, Error>
    where
        M: prost::Message + Default + Send + 'static,
        F: Transact<M, Error>,
    {
        idempotency::execute(&self.store, &caller.scope(), self.clock.now(), key, work).await
    }

    /// Frees the key of a call if its record has ended since. A repeated response would report a stop
    /// that is over.
    async fn free_ended<R: RecordRow>(
        &self,
        caller: &Caller,
        key: &IdempotencyKey,
    ) -> Result<(), Error> {
        let (key, now, within) = (key.clone(), self.clock.now(), caller.tenant().cloned());
        let freed = self.store.write_tx(&caller.scope(), async move |db| {
            let Some(first) = key.find(db, now).await? else { return Ok::<_, Error>(()) };
            let made: Done<R> = first.read()?;
            let row = R::find(db, within.as_ref(), made.message.id(), true).await.optional()?;
            if row.is_none_or(|row| changeable(&row).is_err()) {
                key.forget(db, &first).await?;
            }
            Ok(())
        });
        freed.await
    }

    /// Refuses to repeat a response with a secret if the secret's record has ended since, because
    /// the secret can't be used any more. The stored response was erased when it was read for this
    /// repetition.
    pub(crate) async fn shown_again<M, R: RecordRow>(
        &self,
        caller: &Caller,
        done: &Done<M>,
        record: Option<&R>,
    ) -> Result<(), Error> {
        let Some(id) = record.map(|record| record.id().to_owned()).filter(|_| done.replayed) else {
            return Ok(());
        };
        let within = caller.tenant().cloned();
        let found = self.store.read_tx(&caller.scope(), async move |db| {
            Ok::<_, Error>(R::find(db, within.as_ref(), &id, true).await.optional()?)
        });
        let has_ended = found.await?.is_none_or(|row| changeable(&row).is_err());
        if has_ended { Err(idempotency::Error::Erased.into()) } else { Ok(()) }
    }

    /// Waits until the graph has applied the write.
    pub(crate) async fn wait_for_graph<R: RecordRow>(&self) {
        if R::AUTHORITY {
            (self.after_commit)().await;
        }
    }
}

/// Combines the violations of the body's own rules, in `found`, with the violations from
/// `validate_with_store`. If the body violates its own rules, all violations are the outer error.
/// Otherwise the violations depend on other records and are the inner error. The inner error
/// refuses a first call, but not its repetition.
fn examined<C: RecordRequest>(
    examined: Result<Violations, Error>,
    mut found: Violations,
) -> Result<Result<(), Error>, Error> {
    let add = |faults: Violations, found: &mut Violations| {
        found.within(C::FIELD, |found| {
            faults.list.into_iter().for_each(|fault| found.add(&fault.field, fault.problem));
        });
    };
    if found.is_empty() {
        return Ok(examined.and_then(|faults| {
            add(faults, &mut found);
            Error::unless_clean(found)
        }));
    }
    if let Ok(faults) = examined {
        add(faults, &mut found);
    }
    Error::unless_clean(found).map(Ok)
}

/// Returns the caller, the request, and its violations of the proto's rules.
pub(crate) fn admit<T: Validate>(call: Request<T>) -> Result<(Caller, T, Violations), ApiError> {
    let caller = caller(&call)?;
    let request = call.into_inner();
    let mut found = Violations::default();
    request.validate(&mut found);
    Ok((caller, request, found))
}

pub(crate) fn or_not_found<R: RecordRow>(row: QueryResult<R>, id: &str) -> Result<R, Error> {
    row.optional()?.ok_or_else(|| Error::NotFound { kind: R::KIND, id: id.to_owned() })
}

/// Refuses a record in a final state.
pub(crate) fn changeable<R: RecordRow>(row: &R) -> Result<(), Error> {
    match final_state(row) {
        None => Ok(()),
        Some(state) => {
            let (id, state) = (row.id().to_owned(), state.to_string());
            Err(Error::Final { kind: R::KIND, id, state })
        }
    }
}

/// Refuses changes by a tenant's caller to fields that only the installation's owner may change. A
/// field with its present value is not a change.
fn check_changes<R: RecordRow>(was: &R, patch: &R, mask: &FieldMask) -> Result<(), Error> {
    let differs = |path: &str| {
        let mut row = was.clone();
        let mask = FieldMask { paths: vec![path.to_owned()] };
        Record::merge(&mut row, patch.clone(), &mask);
        row.encode_to_vec() != was.encode_to_vec()
    };
    let owned = mask.distinct().filter(|path| !R::TENANT_CHANGES.contains(path));
    let owned: Vec<&str> = owned.filter(|path| differs(path)).collect();
    if owned.is_empty() {
        return Ok(());
    }
    let fields = owned.join("`, `");
    Err(Error::Role(format!("only the installation's owner changes `{fields}` of a {}", R::KIND)))
}

fn final_state<R: RecordRow>(row: &R) -> Option<R::State> {
    row.known_state().filter(|state| R::FINAL.contains(state))
}
