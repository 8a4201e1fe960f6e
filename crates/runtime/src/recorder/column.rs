//! Columns of texts and bytes for a statement that stores many rows.
//!
//! They are parameters of the types `text[]` and `bytea[]`. Diesel would first encode each element in
//! a separate buffer, and this buffer would grow several times.

use std::fmt;

use authority_model::stored_record;
use diesel::{
    pg::Pg,
    serialize::{self, IsNull, Output, ToSql},
    sql_types::{Array, Bytea, Text},
};

/// The id of the type `text` in every database (`pg_type.dat`).
const TEXT: u32 = 25;
const BYTEA: u32 = 17;

/// The first capacity of a column of records, in bytes. A batch of 16 records rarely needs more.
const RECORDS: usize = 8 << 10;

/// The values of a column, already encoded: each as its length and its bytes. `TYPE` is the id of
/// the elements' type.
pub(super) struct Column<const TYPE: u32> {
    count: usize,
    values: Vec<u8>,
}

pub(super) type Texts = Column<TEXT>;
pub(super) type Bytes = Column<BYTEA>;

impl<const TYPE: u32> Column<TYPE> {
    pub(super) fn of<'v>(values: impl Iterator<Item = &'v [u8]> + Clone) -> Self {
        let (count, bytes) = values.clone().fold((0, 0), |(count, bytes), value| {
            (count + 1, bytes + size_of::<i32>() + value.len())
        });
        let mut encoded = Vec::with_capacity(bytes);
        for value in values {
            encoded.extend_from_slice(&encoded_length(value.len()));
            encoded.extend_from_slice(value);
        }
        Self { count, values: encoded }
    }

    /// Writes the array in PostgreSQL's binary form: its dimensions, whether an element is NULL,
    /// the type, the length and the first index, then the elements.
    fn write(&self, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
        use std::io::Write;
        let count = i32::try_from(self.count)?;
        let dimensions = i32::from(count > 0);
        out.write_all(&dimensions.to_be_bytes())?;
        out.write_all(&0_i32.to_be_bytes())?;
        out.write_all(&TYPE.to_be_bytes())?;
        if count > 0 {
            out.write_all(&count.to_be_bytes())?;
            out.write_all(&1_i32.to_be_bytes())?;
            out.write_all(&self.values)?;
        }
        Ok(IsNull::No)
    }
}

impl Bytes {
    /// The records of decisions, in the form in which they are stored.
    pub(super) fn of_records<'v>(records: impl Iterator<Item = &'v [u8]>) -> Self {
        let (mut count, mut encoded) = (0, Vec::with_capacity(RECORDS));
        for record in records {
            let start = encoded.len();
            encoded.extend_from_slice(&encoded_length(0));
            stored_record::compress(record, &mut encoded);
            let length = encoded_length(encoded.len() - start - size_of::<i32>());
            encoded[start..start + size_of::<i32>()].copy_from_slice(&length);
            count += 1;
        }
        Self { count, values: encoded }
    }
}

/// The length of a value as PostgreSQL reads it. A value that is too long makes the parameter
/// malformed: PostgreSQL refuses it.
fn encoded_length(bytes: usize) -> [u8; size_of::<i32>()] {
    i32::try_from(bytes).unwrap_or(i32::MAX).to_be_bytes()
}

impl<const TYPE: u32> fmt::Debug for Column<TYPE> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} values", self.count)
    }
}

impl ToSql<Array<Text>, Pg> for Texts {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        self.write(out)
    }
}

impl ToSql<Array<Bytea>, Pg> for Bytes {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        self.write(out)
    }
}
