//! Billing accounts, which pay for usage. They are closed, never deleted.

use authority_model::{
    proto::registry::*, schema::billing_accounts, service::BillingAccountService,
};

use crate::flow::prelude::*;

impl RecordRow for BillingAccount {
    type List = ListBillingAccountsRequest;

    fn filtered(by: &ListBillingAccountsRequest) -> billing_accounts::BoxedQuery<'_, Pg> {
        let mut query = billing_accounts::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(billing_accounts::state.eq(state));
        }
        query
    }
}

impl_queries!(BillingAccount, billing_accounts);

impl Entity for BillingAccount {
    const ON_DELETE: OnDelete<Self::State> =
        OnDelete::Refuse(ErrorCode::BillingAccountsCannotBeDeleted);
}

impl_save!(BillingAccount, billing_accounts);
impl_end!(BillingAccount, billing_accounts);

#[tonic::async_trait]
impl BillingAccountService for Registry {
    async fn list_billing_accounts(
        &self,
        call: Request<ListBillingAccountsRequest>,
    ) -> Reply<ListBillingAccountsResponse> {
        self.list(call).await
    }

    async fn create_billing_account(
        &self,
        call: Request<CreateBillingAccountRequest>,
    ) -> Reply<BillingAccount> {
        self.create(call).await
    }

    async fn get_billing_account(
        &self,
        call: Request<GetBillingAccountRequest>,
    ) -> Reply<BillingAccount> {
        self.get(call).await
    }

    async fn update_billing_account(
        &self,
        call: Request<UpdateBillingAccountRequest>,
    ) -> Reply<BillingAccount> {
        self.update(call).await
    }

    async fn delete_billing_account(
        &self,
        call: Request<DeleteBillingAccountRequest>,
    ) -> Reply<DeleteBillingAccountResponse> {
        self.delete(call).await
    }
}
