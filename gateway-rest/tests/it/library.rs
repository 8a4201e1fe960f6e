//! The library: a service that returns the requests it receives, and a host that requires a card.

use std::{
    pin::Pin,
    time::{Duration, SystemTime},
};

use axum::body::Body;
use gateway_rest::{Call, Host, Route};
use gateway_rest_tests::{
    library::{
        Book, CreateBookRequest, DeskEvent, Everything, GetBookRequest, GetCoverResponse,
        GetSchemaResponse, LendBookRequest, LendBookResponse, ListBooksRequest, ListBooksResponse,
        ListTitlesResponse, ReadFileRequest, ReadPageRequest, ReplaceTagsRequest, Scalars,
        UpdateBookRequest, WatchDeskRequest,
        book_service_server::{BookService, BookServiceServer},
    },
    tables::ROUTES,
};
use http::{HeaderMap, StatusCode, request::Parts};
use http_body_util::BodyExt as _;
use pbjson_types::Empty;
use serde_json::{Value, json};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use tower::ServiceExt as _;

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the fields with problems.
    pub(crate) fn fields(&self) -> Vec<String> {
        self.problems().into_iter().map(|(field, _)| field).collect()
    }

    pub(crate) fn problems(&self) -> Vec<(String, String)> {
        let body = self.json();
        let details = body["details"].as_array().cloned().unwrap_or_default();
        let violations = details.iter().filter_map(|detail| detail["fieldViolations"].as_array());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        violations.flatten().map(|v| (text(&v["field"]), text(&v["description"]))).collect()
    }

    pub(crate) fn reason(&self) -> String {
        self.json()["details"][0]["reason"].as_str().unwrap_or_default().to_owned()
    }
}

/// Makes a call as a reader with a card.
pub(crate) async fn send(method: &str, uri: &str, body: &str) -> Reply {
    let headers = [("authorization", "Bearer card"), ("content-type", "application/json")];
    send_with(method, uri, &headers, body.to_owned()).await
}

pub(crate) async fn get(uri: &str) -> Reply {
    send("GET", uri, "").await
}

pub(crate) async fn send_with(
    method: &str,
    uri: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Reply {
    let mut request = http::Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let grpc = tonic::service::Routes::new(BookServiceServer::new(Library));
    let router = gateway_rest::router(ROUTES, grpc, Desk);
    let response = router.oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Reply { status: parts.status, headers: parts.headers, body }
}

/// The host. A reader without a card can only get the cover.
pub(crate) struct Desk;

impl Host for Desk {
    async fn admit(&self, route: &'static Route, parts: &mut Parts) -> Result<(), Status> {
        let card = parts.headers.get("authorization").map(|value| value.to_str().unwrap());
        match card {
            _ if route.rpc.ends_with("/GetCover") => Ok(()),
            Some("Bearer card") => {
                parts.extensions.insert("known reader");
                Ok(())
            }
            Some(_) => Err(Status::permission_denied("this card has expired")),
            None => Err(Status::unauthenticated("show a card")),
        }
    }

    fn body_limit(&self) -> usize {
        4096
    }

    fn now(&self) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_851_800))
    }
}

#[derive(Clone)]
struct Library;

type Answer<T> = Result<Response<T>, Status>;

#[track_caller]
fn with_metadata<T>(message: T, metadata: &[(&'static str, &'static str)]) -> Response<T> {
    let mut response = Response::new(message);
    for (name, value) in metadata {
        response.metadata_mut().insert(*name, value.parse().unwrap());
    }
    response
}

fn violation(field: &str, problem: &str) -> Status {
    let mut details = ErrorDetails::with_bad_request_violation(field, problem);
    details.set_error_info("invalid_request", "library", [("shelf".to_owned(), "7".to_owned())]);
    let message = format!("`{field}` {problem}");
    Status::with_error_details(Code::InvalidArgument, message, details)
}

#[tonic::async_trait]
impl BookService for Library {
    type ExportBooksStream = Pin<Box<dyn Stream<Item = Result<Book, Status>> + Send>>;

    async fn list_books(&self, call: Request<ListBooksRequest>) -> Answer<ListBooksResponse> {
        // The request that arrived, as pbjson reads it.
        let seen = serde_json::to_string(call.get_ref()).unwrap();
        Ok(Response::new(ListBooksResponse { next_page_token: seen, ..Default::default() }))
    }

    async fn create_book(&self, call: Request<CreateBookRequest>) -> Answer<Book> {
        let mut metadata = vec![("etag", "\"1\""), ("x-private", "stays inside")];
        if call.metadata().contains_key("idempotency-key") {
            metadata.push(("idempotency-replayed", "true"));
        }
        let book = call.into_inner().book.unwrap_or_default();
        if book.title.is_empty() {
            return Err(violation("book.title", "is required"));
        }
        Ok(with_metadata(Book { id: "lib:b 1/ä".to_owned(), ..book }, &metadata))
    }

    async fn get_book(&self, call: Request<GetBookRequest>) -> Answer<Book> {
        let known = call.extensions().get::<&str>().is_some_and(|who| *who == "known reader");
        let via = call.extensions().get::<Call>().map(|call| call.uri.to_string());
        let id = call.into_inner().id;
        match id.as_str() {
            "missing" => Err(Status::not_found("no book `missing`")),
            "taken" => Err(Status::already_exists("taken")),
            "busy" => {
                let mut status = Status::resource_exhausted("busy");
                status.metadata_mut().insert("retry-after", "7".parse().unwrap());
                Err(status)
            }
            "fixed" => {
                let allow = [("allow".to_owned(), "GET".to_owned())];
                let details = ErrorDetails::with_error_info("books_are_fixed", "library", allow);
                Err(Status::with_error_details(Code::Unimplemented, "no", details))
            }
            "panic" => Err(Status::internal("secret")),
            _ => Ok(Response::new(Book {
                id,
                title: format!("{known}"),
                subject: via,
                ..Default::default()
            })),
        }
    }

    async fn update_book(&self, call: Request<UpdateBookRequest>) -> Answer<Book> {
        let UpdateBookRequest { book, update_mask, force, clear } = call.into_inner();
        let book = book.unwrap_or_default();
        if book.title == "bad" {
            return Err(violation("book.title", "is bad"));
        }
        let paths = update_mask.unwrap_or_default().paths;
        let binding = if force { "forced" } else { "" };
        let contact = clear.unwrap_or_default().paths.join(",");
        Ok(Response::new(Book { tags: paths, binding: binding.to_owned(), contact, ..book }))
    }

    async fn delete_book(&self, _: Request<GetBookRequest>) -> Answer<Empty> {
        Ok(Response::new(Empty {}))
    }

    async fn lend_book(&self, call: Request<LendBookRequest>) -> Answer<LendBookResponse> {
        let LendBookRequest { id, reader, time } = call.into_inner();
        let pages = time.map(|time| i32::try_from(time.seconds).unwrap());
        let book = Book { id, pages, ..Default::default() };
        Ok(Response::new(LendBookResponse { reader, book: Some(book) }))
    }

    async fn export_books(
        &self,
        call: Request<ListBooksRequest>,
    ) -> Answer<Self::ExportBooksStream> {
        let book = |title: &str| Ok(Book { title: title.to_owned(), ..Default::default() });
        match call.into_inner().limit {
            1 => Err(Status::unavailable("not now")),
            2 => {
                let items = [book("one"), Err(Status::data_loss("page torn"))];
                Ok(Response::new(Box::pin(tokio_stream::iter(items))))
            }
            3 => {
                let late = tokio_stream::iter([book("late")]).throttle(Duration::from_secs(40));
                let first = tokio_stream::iter([book("one")]);
                Ok(Response::new(Box::pin(first.chain(late))))
            }
            _ => {
                let items: Self::ExportBooksStream =
                    Box::pin(tokio_stream::iter([book("one"), book("two\n")]));
                Ok(with_metadata(items, &[("ratelimit", "\"books\";r=1"), ("x-private", "stays")]))
            }
        }
    }

    type WatchDeskStream = Pin<Box<dyn Stream<Item = Result<DeskEvent, Status>> + Send>>;

    async fn watch_desk(&self, call: Request<WatchDeskRequest>) -> Answer<Self::WatchDeskStream> {
        let number = call.into_inner().after + 1;
        let note = Some(br#"{"b":1,"a":[]}"#.to_vec());
        let events = [DeskEvent { number, note }, DeskEvent { number: number + 1, note: None }];
        Ok(Response::new(Box::pin(tokio_stream::iter(events.map(Ok)))))
    }

    async fn read_file(&self, call: Request<ReadFileRequest>) -> Answer<ReadFileRequest> {
        Ok(Response::new(call.into_inner()))
    }

    async fn read_page(&self, call: Request<ReadPageRequest>) -> Answer<ReadPageRequest> {
        Ok(Response::new(call.into_inner()))
    }

    async fn list_titles(&self, _: Request<Empty>) -> Answer<ListTitlesResponse> {
        Ok(Response::new(ListTitlesResponse { titles: vec!["A".to_owned(), "B".to_owned()] }))
    }

    async fn get_cover(&self, _: Request<Empty>) -> Answer<GetCoverResponse> {
        Ok(Response::new(GetCoverResponse { html: "<p>Library</p>".to_owned() }))
    }

    async fn get_schema(&self, _: Request<Empty>) -> Answer<GetSchemaResponse> {
        let schema = serde_json::from_value(json!({"type": "object", "a": [1, 0.5]})).unwrap();
        Ok(Response::new(GetSchemaResponse { schema: Some(schema) }))
    }

    async fn replace_tags(&self, call: Request<ReplaceTagsRequest>) -> Answer<ReplaceTagsRequest> {
        Ok(Response::new(call.into_inner()))
    }

    async fn purge_books(&self, _: Request<Empty>) -> Answer<Empty> {
        Ok(Response::new(Empty {}))
    }

    async fn echo(&self, call: Request<Everything>) -> Answer<Everything> {
        Ok(Response::new(call.into_inner()))
    }

    async fn ask(&self, call: Request<Scalars>) -> Answer<Scalars> {
        Ok(Response::new(call.into_inner()))
    }

    async fn hidden(&self, _: Request<Empty>) -> Answer<Empty> {
        Ok(Response::new(Empty {}))
    }
}
