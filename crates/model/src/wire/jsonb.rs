//! A whole message in a `jsonb` column, as the JSON that a client sees.

use std::io::Write;

use diesel::{
    deserialize,
    pg::{Pg, PgValue},
    serialize::{self, IsNull, Output},
};
use prost::Message;

use crate::rest;

/// The first byte of jsonb's binary form: its version.
const VERSION: u8 = 1;

/// `name`: the message's full protobuf name.
pub(crate) fn write(
    name: &str,
    message: &impl Message,
    out: &mut Output<'_, '_, Pg>,
) -> serialize::Result {
    let shape = rest::shape(name).ok_or("message without a shape")?;
    let json = gateway_rest::to_json(shape, &message.encode_to_vec())
        .map_err(|fault| fault.message.into_owned())?;
    out.write_all(&[VERSION])?;
    out.write_all(&json)?;
    Ok(IsNull::No)
}

pub(crate) fn read<M: Message + Default>(
    name: &str,
    value: &PgValue<'_>,
) -> deserialize::Result<M> {
    let shape = rest::shape(name).ok_or("message without a shape")?;
    let [VERSION, json @ ..] = value.as_bytes() else {
        return Err("jsonb of an unknown version".into());
    };
    let proto = gateway_rest::to_proto(shape, json).map_err(|fault| fault.message.into_owned())?;
    Ok(M::decode(proto)?)
}
