//! The ceiling: a tonic service that decodes the same request and returns a constant of the same
//! shape, on the product's own listener. It is the fastest possible service with this listener and
//! codec.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::Ipv4Addr,
    process::Command,
};

use agent_authority::transport::{self, Settings};
use authority_model::proto::runtime::{EvaluateRequest, EvaluateResponse};
use axum::Router;
use prost::Message as _;
use tokio::net::{TcpListener, TcpStream};
use tonic::{
    Request, Response, Status,
    body::Body,
    server::{Grpc, UnaryService},
};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::{
    Fault,
    arguments::Arguments,
    product,
    row::Report,
    server::{Folder, Server, free_address},
    wire::Message,
};

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let address = free_address()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("ceiling").arg(address.port().to_string());
    let mut server = Server::start("ceiling", &mut command, folder)?;
    server.wait(async || TcpStream::connect(address).await.is_ok()).await?;
    let call = product::evaluate(address, None);
    report.measure("bare tonic, the ceiling", call, &server.meter(), arguments).await;
    Ok(())
}

/// Serves until it is killed.
pub(crate) async fn serve(port: u16) -> Result<(), Fault> {
    let answer = EvaluateResponse::decode(answer().as_slice())?;
    let constant = Constant { answer };
    let evaluate = service_fn(move |call| constant.clone().answer(call));
    let router = Router::new().route_service("/{service}/Evaluate", evaluate);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let forever = std::future::pending();
    transport::serve(listener, router, forever, Settings::default()).await?;
    Ok(())
}

#[derive(Clone)]
struct Constant {
    answer: EvaluateResponse,
}

impl Constant {
    async fn answer(
        self,
        call: http::Request<axum::body::Body>,
    ) -> Result<http::Response<Body>, Infallible> {
        let codec = ProstCodec::<EvaluateResponse, EvaluateRequest>::default();
        Ok(Grpc::new(codec).unary(self, call).await)
    }
}

impl UnaryService<EvaluateRequest> for Constant {
    type Response = EvaluateResponse;
    type Future = Ready<Result<Response<EvaluateResponse>, Status>>;

    fn call(&mut self, _: Request<EvaluateRequest>) -> Self::Future {
        ready(Ok(Response::new(self.answer.clone())))
    }
}

/// Returns a response of the product's size and shape.
fn answer() -> Vec<u8> {
    let id = format!("svc:decision:{}", "0123456789abcdef".repeat(4));
    let address = format!("http://127.0.0.1:8080/receipts/{id}");
    let evidence = Message::default()
        .text(1, "audit_reference")
        .text(2, &id)
        .text(3, "allow")
        .text(4, "permission_granted")
        .text(5, &address);
    let signature = Message::default()
        .text(1, "Ed25519")
        .text(2, "RFC8785")
        .text(3, "svc-evidence-2026-01234567")
        .text(4, &"A".repeat(88));
    let pack = Message::default()
        .text(1, &format!("sha256:{}", "0123456789abcdef".repeat(4)))
        .message(2, &signature);
    let rest = Message::default()
        .text(2, "permission_granted")
        .text(3, &id)
        .message(4, &evidence)
        .text(5, &address)
        .message(6, &pack)
        .text(7, "audit.emit")
        .text(8, "actor.stop_signal")
        .text(8, "delegation.revoked");
    // decision: allow; the authority's revision; valid until.
    let mut answer = vec![0x08, 1];
    answer.extend(rest.done());
    answer.extend([0x50, 42, 0x5a, 6, 0x08, 0xf0, 0xd0, 0xe3, 0xd1, 0x06]);
    answer
}
