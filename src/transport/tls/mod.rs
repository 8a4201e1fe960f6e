//! TLS of the node's addresses: the certificate, its replacement, and the clients that may call.

mod accept;
mod admission;
mod clients;
mod expiry;
mod files;
mod handshakes;
mod reload;

use std::sync::Arc;

use authority_config::Config;
use authority_model::surfaces::Surfaces;
use authority_process::worker::Worker;
use tokio::sync::watch;

use clients::Clients;
use files::{Files, Material};

pub use accept::AddressTls;
pub(super) use accept::{Accepted, Client};
pub(super) use admission::Admission;
pub use files::TlsError;
pub(super) use handshakes::Handshakes;

/// TLS of the node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tls {
    material: watch::Receiver<Arc<Material>>,
    /// The clients of the surfaces, and of the metrics; `None` without a certificate authority for
    /// clients.
    clients: Option<(Arc<Clients>, Arc<Clients>)>,
}

impl Tls {
    /// Reads the files of the settings. Returns `None` if the settings have no certificate.
    ///
    /// The worker reads them again when they change.
    ///
    /// # Errors
    /// A file is missing or unusable, or the key does not belong to the certificate.
    pub fn load(config: &Config) -> Result<Option<(Self, Worker)>, TlsError> {
        let Some(files) = Files::of(&config.tls) else { return Ok(None) };
        let (material, worker) = reload::begin(files)?;
        let clients = config.tls.client_ca_file.is_some().then(|| {
            (Arc::new(Clients::of_surfaces(&config.tls)), Arc::new(Clients::of_ops(&config.tls)))
        });
        Ok(Some((Self { material, clients }, worker)))
    }

    /// TLS of an address with these surfaces.
    #[must_use]
    pub fn on(&self, surfaces: Surfaces) -> AddressTls {
        self.address(self.clients.as_ref().map(|(clients, _)| clients), surfaces)
    }

    /// TLS of the address for metrics.
    #[must_use]
    pub fn on_ops(&self) -> AddressTls {
        self.address(self.clients.as_ref().map(|(_, ops)| ops), Surfaces::ALL)
    }

    fn address(&self, clients: Option<&Arc<Clients>>, surfaces: Surfaces) -> AddressTls {
        AddressTls {
            material: self.material.clone(),
            requires_client: clients.is_some_and(|clients| clients.must_identify(surfaces)),
            clients: clients.cloned(),
        }
    }
}
