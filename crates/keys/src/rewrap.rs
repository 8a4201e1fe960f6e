//! Wraps every stored secret again, after a change of the key ring.

use std::sync::Arc;

use super::{
    console_session, custody::Keys, endpoint, error::Error, inventory, message_channel,
    push_subscription,
};
use authority_store::Scope;

impl Keys {
    /// Rewraps the stored secrets of this module, and of webhook endpoints, push subscriptions, message
    /// channels and console sessions, under the ring's current key.
    ///
    /// Returns their number. Older ring keys may then be removed, unless they wrap secrets outside
    /// of these.
    pub async fn rewrap(&self) -> Result<usize, Error> {
        let ring = Arc::clone(&self.0.ring);
        self.store()?
            .write_tx(&Scope::service(), async move |db| {
                let own = inventory::rewrap(db, &ring).await? + endpoint::rewrap(db, &ring).await?;
                let pushed = push_subscription::rewrap(db, &ring).await?
                    + message_channel::rewrap(db, &ring).await?;
                Ok(own + pushed + console_session::rewrap(db, &ring).await?)
            })
            .await
    }
}
