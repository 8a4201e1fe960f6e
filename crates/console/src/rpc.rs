//! The operations that pages call, by their paths.

pub(crate) const LIST_APPROVALS: &str = "/authority.approval.v1.ApprovalService/ListApprovals";
pub(crate) const GET_APPROVAL: &str = "/authority.approval.v1.ApprovalService/GetApproval";
pub(crate) const APPROVE_APPROVAL: &str = "/authority.approval.v1.ApprovalService/ApproveApproval";
pub(crate) const DECLINE_APPROVAL: &str = "/authority.approval.v1.ApprovalService/DeclineApproval";
pub(crate) const WITHDRAW_APPROVAL: &str =
    "/authority.approval.v1.ApprovalService/WithdrawApproval";
pub(crate) const GET_DELEGATION: &str = "/authority.delegation.v1.DelegationService/GetDelegation";
pub(crate) const GET_PRINCIPAL: &str = "/authority.registry.v1.PrincipalService/GetPrincipal";
pub(crate) const LIST_DECISIONS: &str = "/authority.runtime.v1.DecisionService/ListDecisions";
pub(crate) const LIST_TENANTS: &str = "/authority.registry.v1.TenantService/ListTenants";
