//! Encrypts a webhook endpoint's secrets and headers under the key ring.
//!
//! Each value is bound to its endpoint and column: a value copied to another row or column cannot
//! be decrypted. A secret is 32 bytes. Headers are a JSON object of texts.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use authority_crypto::KeyRing;
use authority_model::schema::webhook_endpoints;

use super::{custody::Keys, error::Error, inventory::sql};
use authority_store::Db;

/// A sealed column of `webhook_endpoints`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointColumn {
    Secret,
    PreviousSecret,
    Headers,
}

impl EndpointColumn {
    fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::PreviousSecret => "previous_secret",
            Self::Headers => "sealed_headers",
        }
    }

    fn associated(self, endpoint_id: &str) -> Vec<u8> {
        format!("{endpoint_id}|{}", self.name()).into_bytes()
    }
}

impl Keys {
    /// Encrypts the value of a column in an endpoint's row.
    pub fn seal_endpoint(
        &self,
        endpoint_id: &str,
        column: EndpointColumn,
        plain: &[u8],
    ) -> Result<Vec<u8>, Error> {
        self.seal(&column.associated(endpoint_id), plain)
    }

    /// Decrypts the result of [`Self::seal_endpoint`] for the same endpoint and column.
    pub fn open_endpoint(
        &self,
        endpoint_id: &str,
        column: EndpointColumn,
        sealed: &[u8],
    ) -> Result<Vec<u8>, Error> {
        self.open(&column.associated(endpoint_id), sealed)
    }
}

/// Rewraps the values under the ring's current key. Returns the number of rows.
pub(super) async fn rewrap(db: &mut Db, ring: &KeyRing) -> Result<usize, Error> {
    type Sealed = Option<Vec<u8>>;
    let rows: Vec<(String, Sealed, Sealed, Sealed)> = webhook_endpoints::table
        .select((
            webhook_endpoints::id,
            webhook_endpoints::secret,
            webhook_endpoints::previous_secret,
            webhook_endpoints::sealed_headers,
        ))
        .for_update()
        .load(db)
        .await
        .map_err(sql)?;
    let mut count = 0;
    for (id, secret, previous, headers) in rows {
        let [secret, previous, headers] = [
            anew(ring, secret.as_deref())?,
            anew(ring, previous.as_deref())?,
            anew(ring, headers.as_deref())?,
        ];
        if [&secret, &previous, &headers].iter().all(|column| column.is_none()) {
            continue;
        }
        // A column that is not set stays unchanged.
        diesel::update(webhook_endpoints::table.find(id))
            .set((
                secret.map(|sealed| webhook_endpoints::secret.eq(sealed)),
                previous.map(|sealed| webhook_endpoints::previous_secret.eq(sealed)),
                headers.map(|sealed| webhook_endpoints::sealed_headers.eq(sealed)),
            ))
            .execute(db)
            .await
            .map_err(sql)?;
        count += 1;
    }
    Ok(count)
}

fn anew(ring: &KeyRing, sealed: Option<&[u8]>) -> Result<Option<Vec<u8>>, Error> {
    Ok(sealed.map(|sealed| ring.rewrap(sealed)).transpose()?.flatten())
}
