//! The operations on approval requests.

use authority_model::{proto::approval::*, service::ApprovalService};
use tonic::Response;

use super::{
    act::ApproverAct,
    acted::Shown,
    decidable::Decider,
    eligible,
    handlers::Approvals,
    list::{self, Order, Rows},
    reality, show,
};
use crate::flow::prelude::*;
use authority_api::{identity::caller, named_tenant, page, page_token::PageTokens};

#[tonic::async_trait]
impl ApprovalService for Approvals {
    async fn list_approvals(
        &self,
        call: Request<ListApprovalsRequest>,
    ) -> Reply<ListApprovalsResponse> {
        let (caller, by) = admitted(call)?;
        let (registry, order) = (&self.registry, Order::of(&by)?);
        let tokens = PageTokens::of(&registry.keys, &caller, &by);
        let window = Window::of(by.page(), &tokens)?;
        named_tenant::known(&registry.store, &caller, by.tenant_id.as_deref()).await?;
        let (reader, graph, now) = (caller.clone(), self.graph.clone(), registry.clock.now());
        // A list of requests that the caller may decide has no other requests.
        let marks = list::is_pending(&by) && !by.for_me;
        let read = registry.store.read_tx(&caller.scope(), async move |db| {
            let decider = Decider { graph: &graph, caller: &reader, now };
            let mut found = order.read(db, &decider, &by, &window, &tokens).await?;
            if marks {
                decider.fill(db, &mut found.rows).await?;
            }
            Ok::<_, Error>((found, window.size, tokens))
        });
        let (Rows { rows: mut approvals, total, places }, size, tokens) = read.await?;
        let mut goes_on = page::cut(&mut approvals, size);
        goes_on |= show::cut(registry, &caller, &mut approvals).await?;
        show::fill_computed(registry, &caller, &mut approvals).await?;
        goes_on |= page::cut(&mut approvals, size);
        let next_page_token =
            if goes_on { order.token(&approvals, &places, &tokens) } else { None };
        let total = total.map(|total| i32::try_from(total).unwrap_or(i32::MAX));
        Ok(Response::new(ListApprovalsResponse { approvals, next_page_token, total }))
    }

    async fn export_approvals(
        &self,
        call: Request<ExportApprovalsRequest>,
    ) -> Replies<ExportApprovalsResponse> {
        self.registry.export(call).await
    }

    async fn get_approval(&self, call: Request<GetApprovalRequest>) -> Reply<Approval> {
        let caller = caller(&call)?;
        let mut found: Response<Approval> = self.registry.get(call).await?;
        let approval = found.get_mut();
        show::one(&self.registry, &caller, approval).await?;
        approval.declined_before = show::declined_before(&self.registry, &caller, approval).await?;
        if let Some((would_be, reality)) = self.would_be(&caller, approval).await? {
            (approval.would_be, approval.reality) = (Some(would_be), reality);
            reality::fill(&self.registry, &caller, std::slice::from_mut(approval)).await?;
        }
        let ineligible = self.not_eligible(&caller, approval).await?;
        approval.not_eligible = ineligible.as_ref().map(ToString::to_string);
        approval.ineligibility = ineligible.map(eligible::shown);
        approval.authenticate_again = self.authenticate_again(&caller, approval)?;
        Ok(found)
    }

    async fn approve_approval(&self, call: Request<ApproveApprovalRequest>) -> Reply<Approval> {
        let asked = call.get_ref();
        let said = ApproverAct::Approve(asked.comment.clone());
        let (digest, reviewed) = (asked.request_digest.clone(), asked.reviewed.clone());
        let presentation = asked.presentation_version.clone();
        self.act(call, said, Shown { digest, presentation, reviewed, for_seconds: None }).await
    }

    async fn decline_approval(&self, call: Request<DeclineApprovalRequest>) -> Reply<Approval> {
        let asked = call.get_ref();
        let said = ApproverAct::Decline(asked.reason.clone());
        let (digest, for_seconds) = (asked.request_digest.clone(), asked.for_seconds);
        let presentation = asked.presentation_version.clone();
        let shown = Shown { digest, presentation, for_seconds, ..Shown::default() };
        self.act(call, said, shown).await
    }

    async fn withdraw_approval(&self, call: Request<WithdrawApprovalRequest>) -> Reply<Approval> {
        self.withdraw(call).await
    }

    async fn reopen_approval(&self, call: Request<ReopenApprovalRequest>) -> Reply<Approval> {
        self.reopen(call).await
    }

    async fn list_asked_approvals(
        &self,
        call: Request<ListAskedApprovalsRequest>,
    ) -> Reply<ListAskedApprovalsResponse> {
        self.list_asked(call).await
    }

    async fn get_asked_approval(
        &self,
        call: Request<GetAskedApprovalRequest>,
    ) -> Reply<AskedApproval> {
        self.get_asked(call).await
    }

    async fn cancel_approval(&self, call: Request<CancelApprovalRequest>) -> Reply<AskedApproval> {
        self.cancel(call).await
    }
}
