//! Policies: rules in Cedar. Each text is stored as a version. Only the activated version applies
//! to decisions.

use authority_model::{
    proto::registry::*,
    schema::{applies_to, policies},
    service::PolicyService,
    state::PolicyState,
};

use super::{
    activations, check,
    cost::{self, InForce},
    observing, second_person, versions,
};
use crate::flow::prelude::*;
use authority_api::identity::caller;
use authority_ids::EntityId;
use authority_store as store;
use tonic::Response;

impl RecordRow for Policy {
    type List = ListPoliciesRequest;
    const AUTHORITY: bool = true;
    const TENANT_CHANGES: &'static [&'static str] =
        &["state", "name", "description", "cedar", "notes", "tags", "metadata"];

    fn filtered(by: &ListPoliciesRequest) -> policies::BoxedQuery<'_, Pg> {
        let mut query = policies::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(policies::state.eq(state));
        }
        if let Some(regime) = &by.regime {
            query = query.filter(policies::regime.eq(regime));
        }
        query
    }

    fn defaults(&mut self) {
        let state = if self.cedar.is_some() { PolicyState::Active } else { PolicyState::Draft };
        names::or(&mut self.state, state.as_str());
    }

    fn validate_record(&self, found: &mut Violations) {
        if self.known_state() == Some(PolicyState::Active) && self.cedar.is_none() {
            found.add("cedar", "is required: a policy without rules cannot be active");
        }
        for (place, target) in self.applies_to.iter().enumerate() {
            if let Some(problem) = rules::target(target) {
                found.add(&format!("applies_to[{place}]"), problem);
            }
        }
        let (from, until) = (self.effective_from, self.effective_until);
        rules::span(("effective_from", from), ("effective_until", until), found);
    }

    async fn validate_with_store(
        &self,
        registry: &Registry,
        caller: &Caller,
        patched: Option<&str>,
    ) -> Result<Violations, Error> {
        let mut found = Violations::default();
        let Some(text) = &self.cedar else { return Ok(found) };
        let tenant_id = match patched {
            None => caller.tenant().map_or(self.tenant_id.as_str(), TenantId::as_str).to_owned(),
            Some(id) => tenant_of(registry, caller, id).await?,
        };
        let check = check::of_tenant(registry, caller, &tenant_id).await?;
        for fault in check.errors(text).await? {
            found.add("cedar", fault.to_string());
        }
        if patched.is_none() && self.known_state() == Some(PolicyState::Active) && found.is_empty()
        {
            let new = InForce { tenant_id, ..InForce::of(self, Some(text.clone())) };
            new.check(registry).await?;
        }
        Ok(found)
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let is_of_tenant = tx.caller.tenant().is_some();
        match was {
            None if is_of_tenant => second_person::check_new(self)?,
            Some(was) if is_of_tenant => second_person::check_change(self, was)?,
            _ => {}
        }
        match was {
            None => versions::begin(self, tx).await,
            Some(was) => versions::change(self, was, tx).await,
        }
    }

    async fn after_insert(&self, made: &mut Self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let tenant_id = TenantId::parse(&made.tenant_id)?;
        let rows = self.applies_to.iter().map(|target| {
            let id = EntityId::new(tenant_id.slug(), AppliesTo::KIND, new_id())?;
            Ok((
                applies_to::id.eq(String::from(id)),
                applies_to::tenant_id.eq(&made.tenant_id),
                applies_to::policy_id.eq(&made.id),
                applies_to::target_class.eq(target),
                applies_to::created_by.eq(&tx.caller.actor),
            ))
        });
        let rows: Vec<_> = rows.collect::<Result<_, InvalidId>>()?;
        if !rows.is_empty() {
            diesel::insert_into(applies_to::table).values(rows).execute(tx.db).await?;
        }
        made.applies_to.clone_from(&self.applies_to);
        Ok(())
    }

    async fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> Result<(), Error> {
        check::fill_computed(registry, caller, rows).await
    }
}

impl_queries!(Policy, policies);

impl Registry {
    /// Adds the warnings of the policy's newest text and targets to a response.
    async fn warned(&self, caller: &Caller, mut answer: Response<Policy>) -> Reply<Policy> {
        check::warn(self, caller, answer.get_mut()).await;
        Ok(answer)
    }
}

/// Refuses new times if decisions would then exceed their limit of evaluation steps. Only active
/// policies are checked.
async fn check_times(
    registry: &Registry,
    caller: &Caller,
    call: &UpdatePolicyRequest,
) -> Result<(), Error> {
    let names = |path: &str| {
        call.update_mask.as_ref().is_some_and(|mask| mask.paths.iter().any(|own| own == path))
    };
    let (from, until) = (names("effective_from"), names("effective_until"));
    let Some(patch) = call.policy.as_ref().filter(|_| from || until) else { return Ok(()) };
    let (id, within) = (call.id.clone(), caller.tenant().cloned());
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        Ok::<_, store::Error>(Policy::find(db, within.as_ref(), &id, false).await.optional()?)
    });
    let active = read.await?.filter(|one| one.known_state() == Some(PolicyState::Active));
    let Some(mut policy) = active else { return Ok(()) };
    if from {
        policy.effective_from = patch.effective_from;
    }
    if until {
        policy.effective_until = patch.effective_until;
    }
    policy.applies_to = cost::targets(registry, caller, &policy.id, None).await?;
    InForce::of(&policy, None).check(registry).await
}

/// Returns the tenant of a policy that the caller may see. Empty if the policy is unknown.
async fn tenant_of(registry: &Registry, caller: &Caller, id: &str) -> Result<String, Error> {
    let (id, within) = (id.to_owned(), caller.tenant().cloned());
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let policy = Policy::find(db, within.as_ref(), &id, false).await.optional()?;
        Ok::<_, store::Error>(policy.map(|policy| policy.tenant_id))
    });
    Ok(read.await?.unwrap_or_default())
}

impl Entity for Policy {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Refuse(ErrorCode::PoliciesAreImmutable);
}

impl_save!(Policy, policies);
impl_end!(Policy, policies);

#[tonic::async_trait]
impl PolicyService for Registry {
    async fn list_policies(
        &self,
        call: Request<ListPoliciesRequest>,
    ) -> Reply<ListPoliciesResponse> {
        self.list(call).await
    }

    async fn export_policies(
        &self,
        call: Request<ExportPoliciesRequest>,
    ) -> Replies<ExportPoliciesResponse> {
        self.export(call).await
    }

    async fn create_policy(&self, mut call: Request<CreatePolicyRequest>) -> Reply<Policy> {
        let caller = caller(&call)?;
        // Another person activates a policy of a tenant's admin: it begins as a draft.
        if let Some(policy) = call.get_mut().policy.as_mut().filter(|_| !caller.is_owner()) {
            policy.state.get_or_insert_with(|| PolicyState::Draft.to_string());
        }
        let made = self.create(call).await?;
        self.warned(&caller, made).await
    }

    async fn get_policy(&self, call: Request<GetPolicyRequest>) -> Reply<Policy> {
        let caller = caller(&call)?;
        let found = self.get(call).await?;
        let found = self.completed(&caller, found).await?;
        self.warned(&caller, found).await
    }

    async fn update_policy(&self, call: Request<UpdatePolicyRequest>) -> Reply<Policy> {
        let caller = caller(&call)?;
        check_times(self, &caller, call.get_ref()).await?;
        let changed = self.update(call).await?;
        let changed = self.completed(&caller, changed).await?;
        self.warned(&caller, changed).await
    }

    async fn delete_policy(
        &self,
        call: Request<DeletePolicyRequest>,
    ) -> Reply<DeletePolicyResponse> {
        self.delete(call).await
    }

    async fn activate_policy(&self, call: Request<ActivatePolicyRequest>) -> Reply<Policy> {
        let caller = caller(&call)?;
        let active = versions::activate(self, call).await?;
        let active = self.completed(&caller, active).await?;
        self.warned(&caller, active).await
    }

    async fn observe_policy(&self, call: Request<ObservePolicyRequest>) -> Reply<Policy> {
        let caller = caller(&call)?;
        let observing = observing::begin(self, call).await?;
        self.completed(&caller, observing).await
    }

    async fn unobserve_policy(&self, call: Request<UnobservePolicyRequest>) -> Reply<Policy> {
        let caller = caller(&call)?;
        let ended = observing::end(self, call).await?;
        self.completed(&caller, ended).await
    }

    async fn list_policy_versions(
        &self,
        call: Request<ListPolicyVersionsRequest>,
    ) -> Reply<ListPolicyVersionsResponse> {
        activations::list(self, call).await
    }

    async fn validate_policy(
        &self,
        call: Request<ValidatePolicyRequest>,
    ) -> Reply<ValidatePolicyResponse> {
        versions::validate(self, call).await
    }
}
