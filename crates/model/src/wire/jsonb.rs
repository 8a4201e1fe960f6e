//! Messages stored whole in a `jsonb` column: serde's JSON, with every field under its proto name.

use std::io::Write;

use diesel::{
    deserialize,
    pg::{Pg, PgValue},
    serialize::{self, IsNull, Output},
};
use serde::{Serialize, de::DeserializeOwned};

/// The first byte of jsonb's binary form: the format version.
const VERSION: u8 = 1;

pub(crate) fn write(message: &impl Serialize, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
    out.write_all(&[VERSION])?;
    serde_json::to_writer(out, message)?;
    Ok(IsNull::No)
}

/// Reads a message. Fails on an unknown field or a wrong type, and never reads a message in part.
pub(crate) fn read<M: DeserializeOwned>(value: &PgValue<'_>) -> deserialize::Result<M> {
    let [VERSION, json @ ..] = value.as_bytes() else {
        return Err("jsonb of an unknown version".into());
    };
    Ok(serde_json::from_slice(json)?)
}
