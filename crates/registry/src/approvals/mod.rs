//! Approvals: the requests opened by held decisions, and people's acts on those requests.
//!
//! The recorder opens a request in the transaction of the held decision. People act on it in this
//! module (`act.rs`). When the last required approval is given, the request is evaluated again
//! (`judge.rs`). This module never permits an action: only the call that cites the approved request
//! receives an allow.

mod act;
mod asked;
mod eligible;
mod expire;
mod fresh;
mod judge;
mod list;
mod named;
mod question;
mod reality;
mod reopen;
mod reviewed;
mod show;
mod waiting;
mod withdraw;
mod would_be;

use std::sync::Arc;

use authority_model::{
    proto::approval::*,
    record::{ByIdRequest, RpcRequest},
    schema::approvals,
    service::ApprovalService,
    state::ApprovalState,
    validate::Validate,
    wire::Time,
};
use chrono::{DateTime, Utc};
use diesel::dsl::sql;
use tonic::Response;

pub(super) use act::{ActContext, ApproverAct, Statement, Terms, make as act, sign};
pub(super) use eligible::{APPROVERS, Eligibility, requesters};
pub use expire::expire;
pub(super) use fresh::require as require_fresh;
pub use waiting::measure_waiting;

use super::{
    flow::{changeable, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};
use authority_api::{identity::caller, named_tenant, page, page_token::PageTokens};
use authority_core::{
    graph::{Fence, Graph},
    store::row_id,
};
use authority_decision::{facts::Signature, verdict::ApprovalsNeeded};
use judge::Judgement;
use list::Order;

/// The service of approvals.
#[derive(Clone)]
pub struct Approvals {
    pub registry: Registry,
    pub graph: Arc<Graph>,
}

impl Row for Approval {
    type List = ListApprovalsRequest;

    fn filtered(by: &ListApprovalsRequest) -> approvals::BoxedQuery<'_, Pg> {
        let mut query = approvals::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(approvals::state.eq(state));
        }
        if by.state.as_deref().is_some_and(list::is_open) {
            // This condition matches the partial index on requests that expire.
            query = query.filter(sql::<Bool>("state IN ('pending', 'approved')"));
        }
        if let Some(subject) = &by.subject {
            query = query.filter(approvals::subject.eq(subject));
        }
        if let Some(action) = &by.action {
            query = query.filter(approvals::action.eq(action));
        }
        query
    }

    async fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> Result<(), Error> {
        show::fill_computed(registry, caller, rows).await
    }
}

impl_queries!(Approval, approvals);

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
        let reader = caller.clone();
        let read = registry.store.read_tx(&caller.scope(), async move |db| {
            let found = order.read(db, &reader, &by, &window).await;
            Ok::<_, Error>((found?, window.size))
        });
        let ((mut approvals, total), size) = read.await?;
        let mut goes_on = page::cut(&mut approvals, size);
        goes_on |= show::cut(registry, &caller, &mut approvals).await?;
        show::fill_computed(registry, &caller, &mut approvals).await?;
        goes_on |= page::cut(&mut approvals, size);
        let last = approvals.last().filter(|_| goes_on);
        let next_page_token = last.and_then(|last| order.place_of(last, &tokens));
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
        approval.similar = show::similar(&self.registry, &caller, approval).await?;
        if let Some((would_be, reality)) = self.would_be(&caller, approval).await? {
            (approval.would_be, approval.reality) = (Some(would_be), reality);
            reality::fill(&self.registry, &caller, std::slice::from_mut(approval)).await?;
        }
        let ineligible = self.not_eligible(&caller, approval).await?;
        approval.not_eligible = ineligible.as_ref().map(ToString::to_string);
        approval.ineligibility = ineligible
            .map(|why| Ineligibility { rule: why.rule, remedy: why.remedy.unwrap_or_default() });
        approval.authenticate_again = self.authenticate_again(&caller, approval)?;
        Ok(found)
    }

    async fn approve_approval(&self, call: Request<ApproveApprovalRequest>) -> Reply<Approval> {
        let asked = call.get_ref();
        let said = ApproverAct::Approve(asked.comment.clone());
        let (digest, reviewed) = (asked.request_digest.clone(), asked.reviewed.clone());
        self.act(call, said, Shown { digest, reviewed, for_seconds: None }).await
    }

    async fn decline_approval(&self, call: Request<DeclineApprovalRequest>) -> Reply<Approval> {
        let asked = call.get_ref();
        let said = ApproverAct::Decline(asked.reason.clone());
        let (digest, for_seconds) = (asked.request_digest.clone(), asked.for_seconds);
        self.act(call, said, Shown { digest, for_seconds, ..Shown::default() }).await
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

impl Approvals {
    /// Stores one person's act. The lock on the request serialises acts.
    async fn act<Q>(&self, call: Request<Q>, said: ApproverAct, shown: Shown) -> Reply<Approval>
    where
        Q: RpcRequest + ByIdRequest + Validate,
    {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, request) = admitted(call)?;
        let (id, by) = (request.id().to_owned(), caller.clone());
        let (signer, graph) = (self.registry.keys.clone(), Arc::clone(&self.graph));
        let clock = self.registry.clock.clone();
        let acted = self.registry.idempotent(&caller, key, async move |db| {
            let mut row = or_not_found(Approval::lock(db, by.tenant(), &id).await, &id)?;
            let handle = graph.fenced(db, &row_id(&row.tenant_id)?, Fence::Shared).await?;
            if_match.check(&row)?;
            // Read after the lock: the wait for the row may have lasted past the request's expiry.
            let now = clock.now();
            open(&row, now)?;
            let question = question::digest(db, &row.id).await?;
            let approves = matches!(said, ApproverAct::Approve(_));
            let digest = shown.digest.as_deref();
            question::check(db, &row.decision_id, &question, approves, digest).await?;
            let eligibility = Eligibility::of(db, &graph, &row, now).await?;
            let terms = Terms { tenant_id: &row.tenant_id, about: &row.id, question };
            let context =
                ActContext { keys: &signer, handle: handle.as_ref(), eligibility: &eligibility };
            let act = act(db, &by, context, terms, &row.acts, &said, now).await?;
            if approves {
                reviewed::check(db, &graph, &row, question, &shown.reviewed, now).await?;
            }
            row.acts.push(act);
            let state = match said {
                ApproverAct::Decline(_) => {
                    row.declined_at = Some(now.into());
                    row.declined_for_seconds = shown.for_seconds;
                    ApprovalState::Declined
                }
                ApproverAct::Approve(_) => {
                    let given = eligibility.counted(handle.as_ref(), &row.acts);
                    approved(db, &graph, &mut row, question, given, now).await?
                }
            };
            row.state = state.to_string();
            Ok::<_, Error>(save(db, &row, now).await?)
        });
        // The computed fields are not part of the response stored under an idempotency key. They
        // are read again.
        let mut acted = tagged(acted.await?.reply());
        show::one(&self.registry, &caller, acted.get_mut()).await?;
        Ok(acted)
    }
}

/// The details that a person confirms, and how long their decline is valid.
#[derive(Default)]
struct Shown {
    /// The digest of the exact request.
    digest: Option<String>,
    /// The reality findings that they reviewed.
    reviewed: Vec<String>,
    /// How long the same request is denied after a decline, at most, in seconds.
    for_seconds: Option<i32>,
}

/// Refuses a request that is not pending any more.
fn open(row: &Approval, now: DateTime<Utc>) -> Result<(), Error> {
    changeable(row)?;
    if row.known_state() != Some(ApprovalState::Pending) {
        return Err(Error::NotAllowed(format!("the request is {} already", row.state)));
    }
    if row.expires_at.is_none_or(|end| end <= now.into()) {
        return Err(Error::NotAllowed("the request has expired".to_owned()));
    }
    Ok(())
}

/// Returns the state after one more approval and updates the counts. If current authority requires
/// more people, the request stays pending.
async fn approved(
    db: &mut Db,
    graph: &Graph,
    row: &mut Approval,
    question: [u8; 32],
    given: Vec<Signature>,
    now: DateTime<Utc>,
) -> Result<ApprovalState, Error> {
    row.given = i32::try_from(given.len()).unwrap_or(i32::MAX);
    let needed = ApprovalsNeeded {
        count: u32::try_from(row.needed).unwrap_or(u32::MAX),
        roles: row.roles.clone(),
    };
    if !needed.is_met_by(&given) {
        return Ok(ApprovalState::Pending);
    }
    Ok(match judge::judge(db, graph, row, question, given, now).await? {
        Judgement::Ready => ApprovalState::Approved,
        Judgement::Void => ApprovalState::Void,
        Judgement::More(needed) => {
            row.needed = i32::try_from(needed.count).unwrap_or(i32::MAX);
            row.roles = needed.roles;
            ApprovalState::Pending
        }
    })
}

async fn save(db: &mut Db, row: &Approval, now: DateTime<Utc>) -> QueryResult<Approval> {
    diesel::update(approvals::table.find(&row.id))
        .filter(approvals::tenant_id.eq(&row.tenant_id))
        .set((
            approvals::state.eq(&row.state),
            approvals::acts.eq(&row.acts),
            approvals::given.eq(row.given),
            approvals::needed.eq(row.needed),
            approvals::roles.eq(&row.roles),
            approvals::declined_at.eq(row.declined_at),
            approvals::declined_for_seconds.eq(row.declined_for_seconds),
            approvals::updated_at.eq(Time::from(now)),
        ))
        .returning(Approval::as_returning())
        .get_result(db)
        .await
}
