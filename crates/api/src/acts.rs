//! What a call wrote, for the log of admin acts: in the extensions of its response.

use tonic::Response;

/// The id of the record that the call wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRecord(pub String);

/// The response with the id of the record that it is about.
pub fn with_record<T>(mut response: Response<T>, id: &str) -> Response<T> {
    response.extensions_mut().insert(WrittenRecord(id.to_owned()));
    response
}
