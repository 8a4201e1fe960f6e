//! The bench's calls to a server as its owner.

use std::net::SocketAddr;

use serde_json::Value;

use crate::{
    Fault,
    call::{Call, Protocol},
    http1::Connection,
    product,
    server::Folder,
};

/// The installation's owner.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) address: SocketAddr,
    credential: String,
}

impl Owner {
    /// Creates the owner of the server with this folder.
    pub(crate) fn new(address: SocketAddr, folder: &Folder, name: &str) -> Result<Self, Fault> {
        Ok(Self { address, credential: product::owner(folder, name)? })
    }

    pub(crate) fn credential(&self) -> &str {
        &self.credential
    }

    /// Makes a POST request, and returns the body of a successful response.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Fault> {
        let call = Call {
            address: self.address,
            protocol: Protocol::Rest,
            path: path.to_owned().into(),
            credential: Some(self.credential.clone()),
            body: body.to_string().into_bytes(),
            allowed: |_| true,
            decisions: 0,
        };
        let mut connection = Connection::open(&call).await?;
        let (status, answer) = connection.ask().await?;
        if !(200..300).contains(&status) {
            return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(answer)).into());
        }
        Ok(serde_json::from_slice(answer)?)
    }
}
