//! The source of an issuer's keys.

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;

use super::{
    error::Error,
    jwks::{self, VerifyingKey},
    jwks_client::JwksClient,
};

/// Keys by kid.
type KeySet = HashMap<String, VerifyingKey>;

/// The source of an issuer's keys.
#[derive(Clone)]
pub enum KeySource {
    /// Over the network.
    Remote(JwksClient),
    /// From this process: the keys of the development identity provider.
    Local(Arc<LocalJwks>),
}

impl KeySource {
    /// Returns a source that calls `document` for the keys at every look-up.
    pub fn local(document: impl Fn() -> Arc<str> + Send + Sync + 'static) -> Self {
        Self::Local(Arc::new(LocalJwks {
            document: Box::new(document),
            read: RwLock::new((Arc::from(""), Arc::default())),
        }))
    }

    /// Returns the key with this kid.
    ///
    /// # Errors
    /// [`Error::Token`] if the issuer has no such key; [`Error::Unavailable`] if the keys cannot be
    /// read now.
    pub(super) async fn key(&self, kid: &str) -> Result<VerifyingKey, Error> {
        match self {
            Self::Remote(client) => client.key(kid).await,
            Self::Local(local) => local.key(kid),
        }
    }
}

pub struct LocalJwks {
    document: Box<dyn Fn() -> Arc<str> + Send + Sync>,
    /// The last document, and its keys.
    read: RwLock<(Arc<str>, Arc<KeySet>)>,
}

impl LocalJwks {
    fn key(&self, kid: &str) -> Result<VerifyingKey, Error> {
        let document = (self.document)();
        let known = {
            let (of, set) = &*self.read.read();
            (*of == document).then(|| Arc::clone(set))
        };
        let set = if let Some(set) = known {
            set
        } else {
            let read = jwks::read(document.as_bytes(), &jwks::ALGORITHMS)
                .map_err(|_| Error::Unavailable)?;
            let set = Arc::new(read.keys);
            *self.read.write() = (document, Arc::clone(&set));
            set
        };
        set.get(kid).cloned().ok_or(Error::Token("no key of its issuer has its `kid`"))
    }
}
