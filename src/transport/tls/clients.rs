//! The clients that may call each surface, by the names in their certificates.

use authority_config::{self as config, OpenToAll};
use authority_model::surfaces::Surfaces;
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::admission::Admission;

/// The name that stands for every certificate of the configured authorities.
const ANY: &str = "*";

#[derive(Debug)]
pub(super) struct Clients {
    /// The names of each surface. A surface that is not listed here has no clients.
    names: Vec<(Surfaces, Vec<String>)>,
    /// The surfaces that clients without a certificate may call.
    open: Surfaces,
    /// Whether they may call the health checks.
    has_open_health: bool,
}

impl Clients {
    pub(super) fn of_surfaces(tls: &config::Tls) -> Self {
        let names = tls.clients().into_iter().filter_map(|(_, surface, names)| {
            let surface = surface_of(surface)?;
            Some((surface, names.to_vec()))
        });
        let open = tls.without_certificate.iter().copied().filter_map(surface_of);
        Self {
            names: names.collect(),
            open: open.fold(Surfaces::NONE, Surfaces::and),
            has_open_health: tls.without_certificate.contains(&OpenToAll::Health),
        }
    }

    /// The clients of the address for metrics, which has no other surface.
    pub(super) fn of_ops(tls: &config::Tls) -> Self {
        let is_open = tls.without_certificate.contains(&OpenToAll::Ops);
        Self {
            names: vec![(Surfaces::ALL, tls.ops_clients.clone())],
            open: if is_open { Surfaces::ALL } else { Surfaces::NONE },
            has_open_health: false,
        }
    }

    /// Whether every client of an address with these surfaces needs a certificate.
    pub(super) fn must_identify(&self, surfaces: Surfaces) -> bool {
        !self.has_open_health && !self.open.meets(surfaces)
    }

    /// Returns the permitted calls of a client. The handshake has verified its certificate, if any.
    pub(super) fn admit(&self, certificate: Option<&CertificateDer<'_>>) -> Admission {
        let names = certificate.map(names).unwrap_or_default();
        let is_listed = |listed: &String| {
            listed == ANY && certificate.is_some() || names.iter().any(|name| name.is(listed))
        };
        let surfaces = self.names.iter().filter(|(_, listed)| listed.iter().any(is_listed));
        Admission {
            surfaces: surfaces.fold(self.open, |all, (surface, _)| all.and(*surface)),
            has_health: self.has_open_health,
            has_certificate: certificate.is_some(),
        }
    }
}

fn surface_of(named: OpenToAll) -> Option<Surfaces> {
    match named {
        OpenToAll::Admin => Some(Surfaces::ADMIN),
        OpenToAll::App => Some(Surfaces::APP),
        OpenToAll::Gateway => Some(Surfaces::GATEWAY),
        OpenToAll::Site => Some(Surfaces::SITE),
        OpenToAll::Ops | OpenToAll::Health => None,
    }
}

enum Name<'a> {
    Dns(&'a str),
    Uri(&'a str),
}

impl Name<'_> {
    /// Whether this is a listed name. Only a URI contains a colon.
    fn is(&self, listed: &str) -> bool {
        match self {
            Self::Dns(name) => !listed.contains(':') && name.eq_ignore_ascii_case(listed),
            Self::Uri(uri) => listed.contains(':') && *uri == listed,
        }
    }
}

/// Returns the subject alternative names of a certificate that are DNS names or URIs. The common
/// name is ignored. A wildcard is not the name of a client.
fn names<'a>(certificate: &'a CertificateDer<'_>) -> Vec<Name<'a>> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    let dns = certificate.valid_dns_names().filter(|name| !name.contains('*')).map(Name::Dns);
    dns.chain(certificate.valid_uri_names().map(Name::Uri)).collect()
}

#[cfg(test)]
mod tests {
    use authority_config::Tls;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(dns: &[&str], uris: &[&str], common_name: &str) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let dns = dns.iter().map(|name| SanType::DnsName((*name).try_into().unwrap()));
        let uris = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap()));
        params.subject_alt_names = dns.chain(uris).collect();
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn tls(admin: &[&str], app: &[&str], open: &[OpenToAll]) -> Tls {
        let listed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Tls {
            admin_clients: listed(admin),
            app_clients: listed(app),
            without_certificate: open.to_vec(),
            ..Tls::default()
        }
    }

    #[test]
    fn a_name_opens_the_surfaces_that_list_it() {
        let spiffe = "spiffe://example.org/billing";
        let tls = tls(&["ops.example.org"], &["billing.example.org", spiffe], &[]);
        let clients = Clients::of_surfaces(&tls);
        let both = Surfaces::ADMIN.and(Surfaces::APP);
        for (dns, uris, expected) in [
            (&["billing.example.org"][..], &[][..], Surfaces::APP),
            (&["BILLING.example.org"], &[], Surfaces::APP),
            (&["x.example.org", "ops.example.org"], &[], Surfaces::ADMIN),
            (&["ops.example.org"], &[spiffe], both),
            (&[], &[spiffe], Surfaces::APP),
            (&[], &["spiffe://example.org/BILLING"], Surfaces::NONE),
            (&[], &["spiffe://example.org/billing/x"], Surfaces::NONE),
            // A URI is not a DNS name.
            (&[], &["ops.example.org"], Surfaces::NONE),
            (&["*.example.org"], &[], Surfaces::NONE),
            (&["xbilling.example.org", "billing.example.org.evil.test"], &[], Surfaces::NONE),
            (&[], &[], Surfaces::NONE),
        ] {
            let admission = clients.admit(Some(&certificate(dns, uris, "billing.example.org")));
            assert_eq!(admission.surfaces, expected, "{dns:?} {uris:?}");
        }
        assert_eq!(clients.admit(None).surfaces, Surfaces::NONE);
    }

    #[test]
    fn a_star_is_every_certificate_and_not_the_absence_of_one() {
        let clients = Clients::of_surfaces(&tls(&["*"], &[], &[]));
        let nameless = certificate(&[], &[], "x");
        assert_eq!(clients.admit(Some(&nameless)).surfaces, Surfaces::ADMIN);
        assert_eq!(clients.admit(None).surfaces, Surfaces::NONE);
    }

    #[test]
    fn a_certificate_is_optional_only_where_a_surface_is_open() {
        let app = Surfaces::APP;
        let closed = Clients::of_surfaces(&tls(&["a"], &["a"], &[]));
        assert!(closed.must_identify(Surfaces::ALL));
        let open = Clients::of_surfaces(&tls(&["a"], &[], &[OpenToAll::App]));
        assert!(!open.must_identify(Surfaces::ALL) && !open.must_identify(app));
        assert!(open.must_identify(Surfaces::ADMIN) && open.must_identify(Surfaces::SITE));
        assert_eq!(open.admit(None).surfaces, app);
        let health = Clients::of_surfaces(&tls(&["a"], &[], &[OpenToAll::Health]));
        assert!(!health.must_identify(Surfaces::ADMIN));
        assert_eq!(health.admit(None).surfaces, Surfaces::NONE);
        // The address for metrics has a list of its own.
        let ops = Clients::of_ops(&tls(&["*"], &["*"], &[OpenToAll::Health]));
        assert!(ops.must_identify(Surfaces::ALL));
        assert_eq!(ops.admit(Some(&certificate(&["a"], &[], "a"))).surfaces, Surfaces::NONE);
        let ops = Clients::of_ops(&tls(&["a"], &[], &[OpenToAll::Ops]));
        assert_eq!(ops.admit(None).surfaces, Surfaces::ALL);
    }
}
