//! All services of an address: gRPC, gRPC-Web and REST, and the pages.

use std::{net::IpAddr, sync::Arc};

use authority_api::identity::AuthenticateLayer;
use authority_config::Config;
use authority_process::worker::Worker;
use axum::{Router, body::Body, middleware::from_fn_with_state};
use gateway_rest::Gateway;
use tonic::service::Routes;
use tower::{
    Layer as _,
    util::{MapRequestLayer, MapResponseLayer},
};

use super::{
    deadline::DeadlineLayer,
    direct::{BelowRest, Deciding, direct},
    error::Error,
    front::{FrontPage, front},
    grpc::{GrpcOnlyLayer, UnknownMethodLayer},
    host::RestHost,
    measure::MeasureLayer,
    overload::OverloadLayer,
    pretty::PrettyLayer,
    stream_deadline::StreamDeadlineLayer,
};
use crate::{
    routes::ROUTES,
    transport::{Entry, Peer, normalize_grpc_web},
};

pub(super) struct Served {
    /// The services.
    pub(super) grpc: Routes,
    /// The services that decide.
    pub(super) deciding: Deciding,
    pub(super) host: RestHost,
    /// Receipts, widgets and the reference.
    pub(super) pages: Router,
    pub(super) console: authority_console::Parts,
}

impl Served {
    /// Builds the entry into the services, and the console's background work. The console calls the
    /// services through the same layers as any other client.
    pub(super) fn entry(self, config: &Config) -> Result<(Entry, Option<Worker>), Error> {
        let Self { grpc, deciding, host, pages, console } = self;
        let authenticated = AuthenticateLayer::new(host.identity.clone(), client_of);
        let only_grpc = GrpcOnlyLayer(Arc::new(host.clone()));
        let deadlines = DeadlineLayer::new(host.clone());
        let overload = OverloadLayer(Arc::new(host.overload.clone()));
        let pretty = PrettyLayer(Arc::new(host.clone()));
        let (measured, others) = (MeasureLayer::new(), authenticated.layer(grpc.clone()));
        let below = BelowRest { deciding: deciding.clone(), others };
        let gateway = Gateway::new(ROUTES, below, host);
        let of_axum = |answer: http::Response<tonic::body::Body>| answer.map(Body::new);
        let deciding = MapResponseLayer::new(of_axum).layer(deciding);
        let deciding = authenticated.layer(overload.layer(StreamDeadlineLayer.layer(deciding)));
        let direct = direct(
            measured.layer(deadlines.layer(deciding)),
            measured.layer(deadlines.layer(pretty.layer(gateway.clone()))),
        );
        let rest = Router::new()
            .fallback_service(gateway)
            .layer(UnknownMethodLayer)
            .layer(pretty)
            .layer(from_fn_with_state(FrontPage::new(config), front));
        // tonic-web wraps only gRPC paths, because it answers 400 to other HTTP/1.1 requests.
        let web = grpc
            .into_axum_router()
            .reset_fallback()
            .layer(StreamDeadlineLayer)
            .layer(overload)
            .layer(tonic_web::GrpcWebLayer::new())
            .layer(MapRequestLayer::new(normalize_grpc_web::<Body>))
            .layer(authenticated)
            .layer(only_grpc);
        let layered = |router: Router| router.layer(deadlines.clone()).layer(measured.clone());
        let api = layered(web.clone().merge(pages.clone()).fallback_service(rest.clone()));
        let console = authority_console::build(console, config, api).map_err(Error::Console)?;
        let (signed_in, worker) = console.unzip();
        let pages = pages.merge(signed_in.unwrap_or_default());
        let router = layered(web.merge(pages).fallback_service(rest));
        Ok((Entry { direct: Some(direct), router }, worker))
    }
}

/// The client's address, as the transport provides it; `None` for a call within the process.
pub(super) fn client_of(extensions: &http::Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>()?.client
}
