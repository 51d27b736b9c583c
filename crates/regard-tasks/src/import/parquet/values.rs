//! Values of one column of a row group, as JSON values.

use super::pages::Pages;
use super::{Read, failed};
use ::parquet::basic::{ConvertedType, LogicalType, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::record::Field;
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use serde_json::{Number, Value};

/// Rows that are decoded at a time.
const BATCH: usize = 1024;
/// Most digits and bytes of a decimal number: to write it takes the square of its length.
const DIGITS: i32 = 76;
const BYTES: usize = 32;

/// Whether the values of a column are texts or numbers, and not bytes.
pub(super) fn is_read(column: &ColumnDescriptor) -> bool {
    let is_decimal = column.converted_type() == ConvertedType::DECIMAL;
    let is_short = (1..=DIGITS).contains(&column.type_precision());
    match (column.physical_type(), column.converted_type()) {
        _ if is_decimal && !is_short => false,
        (Type::FIXED_LEN_BYTE_ARRAY, _) => {
            let is_half = matches!(column.logical_type_ref(), Some(LogicalType::Float16));
            (1..=BYTES as i32).contains(&column.type_length()) && (is_decimal || is_half)
        }
        (Type::BYTE_ARRAY, kind) => is_decimal || is_text(kind),
        _ => true,
    }
}

fn is_text(kind: ConvertedType) -> bool {
    matches!(kind, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON)
}

/// Reads `rows` values and gives each to `each`, with its number from 0. A missing one is null.
pub(super) fn read(
    pages: Pages,
    rows: usize,
    each: &mut dyn FnMut(usize, Value) -> Read<()>,
) -> Read<()> {
    let column = pages.column.clone();
    let all = Rows { column: column.clone(), rows };
    let of = |field: Field| Ok(value(&field));
    match get_column_reader(column.clone(), Box::new(pages)) {
        ColumnReader::BoolColumnReader(from) => {
            all.read(from, |v| of(Field::convert_bool(&column, v)), each)
        }
        ColumnReader::Int32ColumnReader(from) => {
            all.read(from, |v| of(Field::convert_int32(&column, v)), each)
        }
        ColumnReader::Int64ColumnReader(from) => {
            all.read(from, |v| of(Field::convert_int64(&column, v)), each)
        }
        ColumnReader::Int96ColumnReader(from) => {
            all.read(from, |v| of(Field::convert_int96(&column, v)), each)
        }
        ColumnReader::FloatColumnReader(from) => {
            all.read(from, |v| of(Field::convert_float(&column, v)), each)
        }
        ColumnReader::DoubleColumnReader(from) => {
            all.read(from, |v| of(Field::convert_double(&column, v)), each)
        }
        ColumnReader::ByteArrayColumnReader(from) => all.read(from, |v| bytes(&column, v), each),
        ColumnReader::FixedLenByteArrayColumnReader(from) => {
            all.read(from, |v| bytes(&column, v.into()), each)
        }
    }
}

struct Rows {
    column: ColumnDescPtr,
    rows: usize,
}

impl Rows {
    fn read<T: DataType>(
        &self,
        mut from: ColumnReaderImpl<T>,
        convert: impl Fn(T::T) -> Read<Value>,
        each: &mut dyn FnMut(usize, Value) -> Read<()>,
    ) -> Read<()> {
        let most = self.column.max_def_level();
        let (mut row, mut levels, mut values) = (0, vec![], vec![]);
        while row < self.rows {
            levels.clear();
            values.clear();
            let count = BATCH.min(self.rows - row);
            let read = from.read_records(count, Some(&mut levels), None, &mut values);
            let (count, ..) = read.map_err(|error| plain(&error.to_string()))?;
            if count == 0 {
                return Err(format!("it has {row} of {} rows", self.rows));
            }
            let mut found = values.drain(..);
            for at in 0..count {
                let is_there = most == 0 || levels.get(at).is_some_and(|level| *level == most);
                let value = match (is_there, is_there.then(|| found.next()).flatten()) {
                    (false, _) => Value::Null,
                    (true, Some(value)) => convert(value)
                        .map_err(|message| failed(&format!("row {}", row + at + 1), message))?,
                    (true, None) => return Err("it lacks values".into()),
                };
                each(row + at, value)?;
            }
            drop(found);
            row += count;
        }
        Ok(())
    }
}

/// Message of an error of the crate, without what kind of error it is.
fn plain(error: &str) -> String {
    error.split_once(": ").map_or(error, |(_, message)| message).to_string()
}

/// Value of a text, or of a number that is stored as bytes.
fn bytes(column: &ColumnDescPtr, found: ByteArray) -> Read<Value> {
    if !is_text(column.converted_type()) {
        if found.len() > BYTES {
            return Err(format!("a number has {} bytes, need at most {BYTES}", found.len()));
        }
        let field = Field::convert_byte_array(column, found);
        return field.map(|field| value(&field)).map_err(|error| plain(&error.to_string()));
    }
    match std::str::from_utf8(found.data()) {
        Ok(text) => Ok(Value::String(text.into())),
        Err(error) => Err(format!("a text is not UTF-8 at byte {}", error.valid_up_to() + 1)),
    }
}

/// JSON value of a field. What JSON has no type for is a text, written as CSV files have it.
fn value(field: &Field) -> Value {
    match *field {
        Field::Null => Value::Null,
        Field::Bool(value) => value.into(),
        Field::Byte(value) => value.into(),
        Field::Short(value) => value.into(),
        Field::Int(value) => value.into(),
        Field::Long(value) => value.into(),
        Field::UByte(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UInt(value) => value.into(),
        Field::ULong(value) => value.into(),
        Field::Float16(value) => float(value.to_f32().to_string()),
        // 0.1 and not 0.10000000149.
        Field::Float(value) => float(value.to_string()),
        Field::Double(value) => float(value.to_string()),
        ref other => Value::String(other.to_string()),
    }
}

/// Value of a number: nothing for one that is none, as pandas takes it.
fn float(text: String) -> Value {
    match text.parse() {
        Ok(value) if f64::is_nan(value) => Value::Null,
        Ok(value) => Number::from_f64(value).map_or(Value::String(text), Value::Number),
        Err(_) => Value::String(text),
    }
}
