//! The location of a service.

use std::{
    fmt::{self, Display, Formatter},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use authority_model::surfaces::Surfaces;
use reqwest::Url;

use crate::{address::is_loopback, error::Error};

/// The location of a service.
pub enum Base {
    Named(Url),
    /// On this machine.
    Local {
        /// `http`, or `https` if the service has a certificate.
        scheme: &'static str,
        main: SocketAddr,
        /// Each address with the surfaces that it serves.
        plan: Vec<(SocketAddr, Surfaces)>,
    },
}

impl Base {
    /// Returns the URL for a path of these segments.
    pub(crate) fn url(&self, path: &[&str]) -> Result<Url, Error> {
        let mut url = match self {
            Self::Named(url) => url.clone(),
            Self::Local { scheme, main, plan } => {
                let path = format!("/{}", path.join("/"));
                let serving = plan.iter().find(|(_, surfaces)| surfaces.serve(&path));
                let address = reachable(serving.map_or(*main, |(address, _)| *address));
                Url::parse(&format!("{scheme}://{address}")).map_err(|_| Error::Address)?
            }
        };
        url.path_segments_mut().map_err(|()| Error::Address)?.pop_if_empty().extend(path);
        Ok(url)
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        match self {
            Self::Named(url) => url.scheme() == "https",
            Self::Local { scheme, .. } => *scheme == "https",
        }
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Named(url) => is_loopback(url),
            Self::Local { .. } => true,
        }
    }
}

impl Display for Base {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(url) => url.fmt(f),
            Self::Local { scheme, main, .. } => write!(f, "{scheme}://{main}/"),
        }
    }
}

/// Replaces a wildcard address by the loopback address.
pub fn reachable(mut listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() {
        let loopback: IpAddr =
            if listen.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        listen.set_ip(loopback);
    }
    listen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_asked_for_at_the_address_that_serves_it() {
        let at = |port| SocketAddr::from(([0, 0, 0, 0], port));
        let plan = vec![(at(1), Surfaces::ALL.without(Surfaces::ADMIN)), (at(2), Surfaces::ADMIN)];
        let base = Base::Local { scheme: "http", main: at(1), plan };
        let url = |path: &[&str]| base.url(path).unwrap().to_string();
        assert_eq!(url(&["api", "v1", "tenants"]), "http://127.0.0.1:2/api/v1/tenants");
        assert_eq!(url(&["v1", "decisions", "a/b"]), "http://127.0.0.1:1/v1/decisions/a%2Fb");
        let plan = vec![(at(1), Surfaces::ALL)];
        let base = Base::Local { scheme: "https", main: at(1), plan };
        assert_eq!(base.url(&["v1"]).unwrap().as_str(), "https://127.0.0.1:1/v1");
        let base = Base::Named(Url::parse("https://a.example/under/").unwrap());
        assert_eq!(base.url(&["v1", "x"]).unwrap().as_str(), "https://a.example/under/v1/x");
    }
}
