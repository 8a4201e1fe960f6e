//! Reads and writes the columns of an index.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parquet::{
    basic::{Compression, ZstdLevel},
    column::{reader::get_typed_column_reader, writer::ColumnWriter},
    data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    file::{
        metadata::{ColumnChunkMetaData, RowGroupMetaData},
        properties::WriterProperties,
        reader::{FileReader, RowGroupReader, SerializedFileReader},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::TypePtr},
};

use super::row::{About, IndexRow};
use crate::format::{Error, frames::LinePlace};

/// The most rows of an index: four times as many as a part has.
const MOST_ROWS: u64 = 64 << 10;
/// The most bytes of all texts in a column. A small file can repeat a long text in every row.
const MOST_TEXT: usize = 64 << 20;

/// `part` is the name of the part's object; `frame_sha256` is hex.
const COLUMNS: &str = "message archived_decisions {
    REQUIRED BYTE_ARRAY decision_id (STRING);
    REQUIRED INT64 evaluated_at (TIMESTAMP(MICROS, true));
    REQUIRED BYTE_ARRAY subject (STRING);
    REQUIRED BYTE_ARRAY action (STRING);
    REQUIRED BYTE_ARRAY decision (STRING);
    REQUIRED BYTE_ARRAY reason_code (STRING);
    REQUIRED INT64 log_index;
    REQUIRED BYTE_ARRAY part (STRING);
    REQUIRED INT64 frame_offset;
    REQUIRED INT64 frame_length;
    REQUIRED INT32 line;
    REQUIRED BYTE_ARRAY frame_sha256 (STRING);
}";

static SCHEMA: LazyLock<Result<TypePtr, String>> =
    LazyLock::new(|| parse_message_type(COLUMNS).map(Arc::new).map_err(|why| why.to_string()));

fn schema() -> Result<TypePtr, Error> {
    SCHEMA.clone().map_err(Error::Index)
}

/// Writes the object of an index. `part` is the name of its part's object.
///
/// # Errors
/// Only a bug causes an error.
pub fn write(rows: &[IndexRow], part: &str) -> Result<Vec<u8>, Error> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by("agent-authority".to_owned());
    let mut file = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties.build()))?;
    let mut group = file.next_row_group()?;
    let texts = |of: fn(&IndexRow) -> &str| rows.iter().map(|row| of(row).into()).collect();
    let numbers = |of: fn(&IndexRow) -> i64| rows.iter().map(of).collect();
    column(&mut group, Values::Texts(texts(|row| &row.about.decision_id)))?;
    column(&mut group, Values::Longs(numbers(|row| row.about.evaluated_at)))?;
    column(&mut group, Values::Texts(texts(|row| &row.about.subject)))?;
    column(&mut group, Values::Texts(texts(|row| &row.about.action)))?;
    column(&mut group, Values::Texts(texts(|row| &row.about.decision)))?;
    column(&mut group, Values::Texts(texts(|row| &row.about.reason_code)))?;
    column(&mut group, Values::Longs(numbers(|row| row.about.log_index)))?;
    column(&mut group, Values::Texts(vec![part.into(); rows.len()]))?;
    column(&mut group, Values::Longs(numbers(|row| signed(row.place.offset))))?;
    column(&mut group, Values::Longs(numbers(|row| signed(row.place.length))))?;
    let lines = rows.iter().map(|row| i32::try_from(row.place.line).unwrap_or(i32::MAX));
    column(&mut group, Values::Integers(lines.collect()))?;
    let hashes = rows.iter().map(|row| hex::encode(row.place.sha256).into_bytes().into());
    column(&mut group, Values::Texts(hashes.collect()))?;
    group.close()?;
    Ok(file.into_inner()?)
}

enum Values {
    Texts(Vec<ByteArray>),
    Longs(Vec<i64>),
    Integers(Vec<i32>),
}

fn column(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, values: Values) -> Result<(), Error> {
    let Some(mut column) = group.next_column()? else {
        return Err(Error::Index("it has too few columns".to_owned()));
    };
    match (column.untyped(), values) {
        (ColumnWriter::ByteArrayColumnWriter(to), Values::Texts(from)) => {
            to.write_batch(&from, None, None)
        }
        (ColumnWriter::Int64ColumnWriter(to), Values::Longs(from)) => {
            to.write_batch(&from, None, None)
        }
        (ColumnWriter::Int32ColumnWriter(to), Values::Integers(from)) => {
            to.write_batch(&from, None, None)
        }
        _ => return Err(Error::Index("a column has another type".to_owned())),
    }?;
    Ok(column.close()?)
}

/// Returns the rows of an index, and the name of its part's object.
///
/// # Errors
/// The object is not an index that this service could have written.
pub fn read(object: Bytes) -> Result<(Vec<IndexRow>, String), Error> {
    let size = object.len();
    let file = SerializedFileReader::new(object)?;
    let metadata = file.metadata();
    if *metadata.file_metadata().schema() != *schema()? {
        return Err(Error::Index("it has other columns".to_owned()));
    }
    // The limits below apply to one row group, and the service writes only one.
    if metadata.num_row_groups() > 1 {
        return Err(Error::Index("it has more than one row group".to_owned()));
    }
    let counts = metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
    let count = counts.sum::<Option<u64>>();
    if count.is_none_or(|count| count > MOST_ROWS) {
        return Err(Error::Index("it has more rows than the service writes".to_owned()));
    }
    let mut columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    if !columns.all(|column| lies_in(column, size)) {
        return Err(Error::Index("it is shorter than its columns".to_owned()));
    }
    let (mut rows, mut part) = (Vec::new(), String::new());
    for number in 0..metadata.num_row_groups() {
        let group = file.get_row_group(number)?;
        let group = Group { group: &*group, rows: metadata.row_group(number).num_rows() };
        let (ids, times) = (group.texts(0)?, group.longs(1)?);
        let (subjects, actions) = (group.texts(2)?, group.texts(3)?);
        let (decisions, reasons) = (group.texts(4)?, group.texts(5)?);
        let (logged, parts) = (group.longs(6)?, group.texts(7)?);
        let (offsets, lengths) = (group.longs(8)?, group.longs(9)?);
        let (lines, hashes) = (group.values::<Int32Type>(10)?, group.texts(11)?);
        for at in 0..ids.len() {
            let mut sha256 = [0; 32];
            let is_hash = hex::decode_to_slice(&hashes[at], &mut sha256).is_ok();
            part.clone_from(&parts[at]);
            if !is_hash || parts[at] != parts[0] {
                return Err(Error::Index("it is not of one part".to_owned()));
            }
            let about = About {
                decision_id: ids[at].as_str().into(),
                evaluated_at: times[at],
                subject: subjects[at].as_str().into(),
                action: actions[at].clone(),
                decision: decisions[at].clone(),
                reason_code: reasons[at].clone(),
                log_index: logged[at],
            };
            let place = LinePlace {
                offset: unsigned(offsets[at])?,
                length: unsigned(lengths[at])?,
                line: u32::try_from(lines[at]).map_err(|_| out_of_range())?,
                sha256,
            };
            rows.push(IndexRow { about, place });
        }
    }
    Ok((rows, part))
}

/// Whether a column's pages are inside the file. The library panics if their offset is negative.
fn lies_in(column: &ColumnChunkMetaData, size: usize) -> bool {
    let starts = [Some(column.data_page_offset()), column.dictionary_page_offset()];
    let starts = starts.into_iter().flatten();
    let length = usize::try_from(column.compressed_size()).ok();
    let mut ends = starts.map(|start| usize::try_from(start).ok()?.checked_add(length?));
    // The dictionary page, if any, comes first: all pages together start at its offset.
    let whole = ends.next_back().flatten();
    whole.is_some_and(|end| end <= size) && ends.all(|end| end.is_some())
}

/// A row group's columns.
struct Group<'g> {
    group: &'g dyn RowGroupReader,
    rows: i64,
}

impl Group<'_> {
    fn values<T: DataType>(&self, column: usize) -> Result<Vec<T::T>, Error> {
        let wanted = usize::try_from(self.rows).map_err(|_| out_of_range())?;
        let mut reader = get_typed_column_reader::<T>(self.group.get_column_reader(column)?);
        let mut values = Vec::new();
        while values.len() < wanted {
            let (read, ..) = reader.read_records(wanted - values.len(), None, None, &mut values)?;
            if read == 0 {
                return Err(Error::Index("a column ends early".to_owned()));
            }
        }
        Ok(values)
    }

    fn texts(&self, column: usize) -> Result<Vec<String>, Error> {
        let values = self.values::<ByteArrayType>(column)?;
        if values.iter().map(ByteArray::len).sum::<usize>() > MOST_TEXT {
            return Err(Error::Index("its texts are longer than the service writes".to_owned()));
        }
        let texts = values.iter().map(|value| Ok(value.as_utf8()?.to_owned()));
        texts.collect()
    }

    fn longs(&self, column: usize) -> Result<Vec<i64>, Error> {
        self.values::<Int64Type>(column)
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> Result<u64, Error> {
    u64::try_from(number).map_err(|_| out_of_range())
}

fn out_of_range() -> Error {
    Error::Index("a number in it is out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u32) -> IndexRow {
        let about = About {
            decision_id: format!("svc:decision:{number:064x}").into(),
            evaluated_at: 1_780_000_000_000_000 + i64::from(number),
            subject: format!("svc:agent:acme:agent-{}", number % 7).into(),
            action: "payments.create".to_owned(),
            decision: "allow".to_owned(),
            reason_code: "permission_granted".to_owned(),
            log_index: number.into(),
        };
        let place = LinePlace {
            offset: u64::from(number / 256) * 9000,
            length: 9000,
            line: number % 256,
            sha256: [u8::try_from(number / 256 % 256).unwrap(); 32],
        };
        IndexRow { about, place }
    }

    #[test]
    fn an_index_is_read_as_it_was_written() {
        for count in [1, 300, 20_000] {
            let rows: Vec<IndexRow> = (0..count).map(row).collect();
            let object = write(&rows, "decisions-00001-abc.jsonl.zst").unwrap();
            let (read, part) = read(object.into()).unwrap();
            assert_eq!(read, rows);
            assert_eq!(part, "decisions-00001-abc.jsonl.zst");
        }
    }

    #[test]
    fn no_more_is_read_than_is_written() {
        let rows: Vec<IndexRow> = (0..65_537).map(row).collect();
        let many = write(&rows, "part").unwrap();
        assert!(read(many.into()).unwrap_err().to_string().contains("more rows"));
        let long = "a".repeat(8 << 10);
        let large = write(&rows[..10_000], &long).unwrap();
        assert!(large.len() < 1 << 20);
        assert!(read(large.into()).unwrap_err().to_string().contains("longer"));
    }

    #[test]
    fn what_is_no_index_is_an_error() {
        let object = write(&[row(1)], "part").unwrap();
        assert!(read(Bytes::from_static(b"PAR1PAR1")).is_err());
        assert!(read(object[..object.len() - 1].to_vec().into()).is_err());
        for at in 0..object.len() {
            let mut damaged = object.clone();
            damaged[at] ^= 0x55;
            // The damaged file may be read as another index, but reading must not panic.
            let _ = read(damaged.into());
        }
    }
}
