//! Makes one call before the load begins, with a client that decodes errors. A wrong path or
//! credential is then reported; during the load, it would only be counted as failed calls.

use bytes::{Buf, BufMut};
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Endpoint,
};

use crate::{
    Fault,
    call::{Call, Protocol},
    http1::Connection,
};

/// Fails unless the response is an allow.
pub(crate) async fn preflight(call: &Call) -> Result<(), Fault> {
    let answer = match call.protocol {
        Protocol::Grpc => grpc(call).await?,
        Protocol::Rest => rest(call).await?,
    };
    if (call.allowed)(&answer) {
        return Ok(());
    }
    Err(format!("{}: not allowed: `{}`", call.path, answer.escape_ascii()).into())
}

async fn rest(call: &Call) -> Result<Vec<u8>, Fault> {
    let mut connection = Connection::open(call).await?;
    let (status, body) = connection.ask().await?;
    if status == 200 {
        return Ok(body.to_vec());
    }
    Err(format!("{}: {status}: {}", call.path, String::from_utf8_lossy(body)).into())
}

async fn grpc(call: &Call) -> Result<Vec<u8>, Fault> {
    let channel = Endpoint::from_shared(format!("http://{}", call.address))?.connect().await?;
    let mut client = Grpc::new(channel);
    client.ready().await?;
    let mut request = Request::new(call.body.clone());
    if let Some(credential) = &call.credential {
        request.metadata_mut().insert("authorization", credential.parse()?);
    }
    let answer = client.unary(request, call.path.parse()?, Bytes).await;
    answer.map(tonic::Response::into_inner).map_err(|status| {
        format!("{}: {:?}: {}", call.path, status.code(), status.message()).into()
    })
}

/// A codec that passes the bytes of messages unchanged.
struct Bytes;

impl Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut message = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut message);
        Ok(Some(message))
    }
}
