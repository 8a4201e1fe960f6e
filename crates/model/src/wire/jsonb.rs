//! A whole message in a `jsonb` column: serde's JSON, with every member under its name in the proto.

use std::io::Write;

use diesel::{
    deserialize,
    pg::{Pg, PgValue},
    serialize::{self, IsNull, Output},
};
use serde::{Serialize, de::DeserializeOwned};

/// The first byte of jsonb's binary form: its version.
const VERSION: u8 = 1;

pub(crate) fn write(message: &impl Serialize, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
    out.write_all(&[VERSION])?;
    serde_json::to_writer(out, message)?;
    Ok(IsNull::No)
}

/// Fails on an unknown member or one of the wrong type, rather than reading a message in part.
pub(crate) fn read<M: DeserializeOwned>(value: &PgValue<'_>) -> deserialize::Result<M> {
    let [VERSION, json @ ..] = value.as_bytes() else {
        return Err("jsonb of an unknown version".into());
    };
    Ok(serde_json::from_slice(json)?)
}
