//! Policies: rules in Cedar. Each text is a version that stays; only an activated one is in force.

use authority_model::{proto::registry::*, schema::policies, service::PolicyService};

use super::{policy_versions, prelude::*};

impl Row for Policy {
    type List = ListPoliciesRequest;
    const FINAL: &'static [&'static str] = &["retired"];
    const AUTHORITY: bool = true;

    fn defaults(&mut self) {
        if self.state.is_empty() {
            let first = if self.cedar.is_some() { "active" } else { "draft" };
            first.clone_into(&mut self.state);
        }
    }

    fn check(&self, found: &mut Violations) {
        if self.state == "active" && self.cedar.is_none() {
            found.add("cedar", "is required: a policy without rules cannot be active");
        }
        if let Some(problem) = self.cedar.as_deref().and_then(rules::cedar) {
            found.add("cedar", problem);
        }
        let (from, until) = (self.effective_from, self.effective_until);
        rules::span(("effective_from", from), ("effective_until", until), found);
    }

    async fn settle(&mut self, was: Option<&Self>, act: &mut Act<'_>) -> Result<(), Error> {
        match was {
            None => policy_versions::begin(self, act).await,
            Some(was) => policy_versions::change(self, was, act).await,
        }
    }

    queries!(policies);
}

impl Entity for Policy {
    const ON_DELETE: OnDelete = OnDelete::Refuse(ErrorCode::PoliciesAreImmutable);

    changes!(policies);
}

fn filtered(by: &ListPoliciesRequest) -> policies::BoxedQuery<'_, Pg> {
    let mut query = policies::table.into_boxed();
    if let Some(regime) = &by.regime {
        query = query.filter(policies::regime.eq(regime));
    }
    query
}

#[tonic::async_trait]
impl PolicyService for Registry {
    async fn list_policies(
        &self,
        call: Request<ListPoliciesRequest>,
    ) -> Reply<ListPoliciesResponse> {
        self.list(call).await
    }

    async fn create_policy(&self, call: Request<CreatePolicyRequest>) -> Reply<Policy> {
        self.create(call).await
    }

    async fn get_policy(&self, call: Request<GetPolicyRequest>) -> Reply<Policy> {
        self.get(call).await
    }

    async fn update_policy(&self, call: Request<UpdatePolicyRequest>) -> Reply<Policy> {
        self.update(call).await
    }

    async fn delete_policy(
        &self,
        call: Request<DeletePolicyRequest>,
    ) -> Reply<DeletePolicyResponse> {
        self.delete(call).await
    }

    async fn activate_policy(&self, call: Request<ActivatePolicyRequest>) -> Reply<Policy> {
        policy_versions::activate(self, call).await
    }

    async fn list_policy_versions(
        &self,
        call: Request<ListPolicyVersionsRequest>,
    ) -> Reply<ListPolicyVersionsResponse> {
        policy_versions::list(self, call).await
    }

    async fn validate_policy(
        &self,
        call: Request<ValidatePolicyRequest>,
    ) -> Reply<ValidatePolicyResponse> {
        policy_versions::validate(call)
    }
}
