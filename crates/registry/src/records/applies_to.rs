//! The targets that policies apply to.

use authority_model::{proto::registry::*, schema::applies_to, service::AppliesToService};

use authority_api::identity::caller;
use authority_model::state::PolicyState;
use authority_store as store;
use tonic::Response;

use crate::{
    flow::{
        prelude::*,
        relationship::{Related, tenant_of},
    },
    policies::{
        check,
        cost::{self, InForce},
    },
};

impl RecordRow for AppliesTo {
    type List = ListAppliesToRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListAppliesToRequest) -> applies_to::BoxedQuery<'_, Pg> {
        let mut query = applies_to::table.into_boxed();
        if let Some(policy_id) = &by.policy_id {
            query = query.filter(applies_to::policy_id.eq(policy_id));
        }
        if let Some(target_class) = &by.target_class {
            query = query.filter(applies_to::target_class.eq(target_class));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        if let Some(problem) = rules::target(&self.target_class) {
            found.add("target_class", problem);
        }
    }

    async fn resolve_tenant(
        &mut self,
        db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        let tenant = tenant_of::<Policy>(db, within, &self.policy_id).await?;
        self.tenant_id = tenant.ok_or_else(|| Error::unknown("policy_id", &self.policy_id))?;
        Ok(())
    }
}

impl_queries!(AppliesTo, applies_to);

impl Related for AppliesTo {
    type Key = String;

    async fn id_of(db: &mut Db, within: Option<&TenantId>, id: &String) -> QueryResult<String> {
        Ok(Self::by_id(db, within, id).await?.id)
    }
}

/// Refuses new targets if decisions would then exceed their limit of evaluation steps. Only active
/// policies are checked.
///
/// Checks the targets without the entry `gone` and with the target `new`.
async fn check_cost(
    registry: &Registry,
    caller: &Caller,
    policy_id: &str,
    gone: Option<&str>,
    new: Option<&str>,
) -> Result<(), Error> {
    // Postgres doesn't accept U+0000. The write itself reports the character as an error of the
    // field.
    if policy_id.contains('\0') {
        return Ok(());
    }
    let (id, within) = (policy_id.to_owned(), caller.tenant().cloned());
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        Ok::<_, store::Error>(Policy::find(db, within.as_ref(), &id, false).await.optional()?)
    });
    let active = read.await?.filter(|one| one.known_state() == Some(PolicyState::Active));
    let Some(mut policy) = active else { return Ok(()) };
    policy.applies_to = cost::targets(registry, caller, policy_id, gone).await?;
    policy.applies_to.extend(new.map(str::to_owned));
    InForce::of(&policy, None).check(registry).await
}

#[tonic::async_trait]
impl AppliesToService for Registry {
    async fn list_applies_to(
        &self,
        call: Request<ListAppliesToRequest>,
    ) -> Reply<ListAppliesToResponse> {
        self.list(call).await
    }

    async fn create_applies_to(&self, call: Request<CreateAppliesToRequest>) -> Reply<AppliesTo> {
        let caller = caller(&call)?;
        if let Some(row) = &call.get_ref().applies_to {
            check_cost(self, &caller, &row.policy_id, None, Some(&row.target_class)).await?;
        }
        let mut made: Response<AppliesTo> = self.create(call).await?;
        let row = made.get_mut();
        // The write has been committed. If a name can't be looked up now, its warning is omitted.
        let named = [row.target_class.clone()];
        if let Ok(check) = check::of_tenant(self, &caller, &row.tenant_id).await
            && let Ok((_, doubts)) = check.findings(None, &named).await
        {
            row.warnings = doubts.into_iter().map(|doubt| doubt.problem).collect();
        }
        Ok(made)
    }

    async fn get_applies_to(&self, call: Request<GetAppliesToRequest>) -> Reply<AppliesTo> {
        let (caller, request) = admitted(call)?;
        let (key, name) = (request.id.clone(), request.id);
        self.get_related(caller, key, name).await
    }

    async fn delete_applies_to(
        &self,
        call: Request<DeleteAppliesToRequest>,
    ) -> Reply<DeleteAppliesToResponse> {
        let (caller, request) = admitted(call)?;
        let (id, within) = (request.id.clone(), caller.tenant().cloned());
        let read = self.store.read_tx(&caller.scope(), async move |db| {
            Ok::<_, store::Error>(AppliesTo::by_id(db, within.as_ref(), &id).await.optional()?)
        });
        if let Some(row) = read.await.map_err(Error::from)? {
            check_cost(self, &caller, &row.policy_id, Some(&row.id), None).await?;
        }
        let (key, name) = (request.id.clone(), request.id);
        self.remove_related(caller, key, name).await
    }
}
