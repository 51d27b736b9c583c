//! Pages of a column, each checked before it is decompressed.

use super::codec::decompress;
use super::thrift::{FALSE, I32, STRUCT, TRUE, Thrift};
use super::{Read, failed};
use ::parquet::basic::{Compression, Encoding, Type};
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::schema::types::ColumnDescPtr;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Kinds of pages, and the fields of their headers.
const DATA: (i32, i64) = (0, 5);
const INDEX: i32 = 1;
const DICTIONARY: (i32, i64) = (2, 7);
const DATA_2: (i32, i64) = (3, 8);

/// Most values of a dictionary beyond the values of its column: some writers keep unused ones.
const UNUSED: usize = 1 << 20;

/// Pages of one column of one row group.
pub(super) struct Pages {
    pub file: Bytes,
    /// Bytes of the file that are not read yet.
    pub rest: Range<usize>,
    pub codec: Compression,
    pub column: ColumnDescPtr,
    /// Number of values that the pages may still have.
    pub values: usize,
    /// Number of bytes that pages of the file may still have, decompressed. All columns share it:
    /// a small file could decompress one page for each of thousands of columns.
    pub left: Arc<AtomicUsize>,
}

/// Header of a page.
#[derive(Default)]
struct Header {
    kind: i32,
    /// Bytes of the page, decompressed and in the file.
    size: usize,
    stored: usize,
    /// Field that has the numbers of this kind of page, and the numbers by their fields.
    of: i64,
    numbers: [Option<i32>; 9],
}

impl Header {
    fn read(thrift: &mut Thrift) -> Read<Header> {
        let mut header = Header { kind: -1, ..Header::default() };
        let length = |value: i32| usize::try_from(value).map_err(|_| format!("has {value} bytes"));
        thrift.fields(&mut |thrift, id, kind| {
            match (id, kind) {
                (1, I32) => header.kind = thrift.int()?,
                (2, I32) => header.size = length(thrift.int()?)?,
                (3, I32) => header.stored = length(thrift.int()?)?,
                (5 | 7 | 8, STRUCT) if header.of == 0 => {
                    header.of = id;
                    thrift.fields(&mut |thrift, id, kind| {
                        let Some(number) = header.numbers.get_mut(id as usize) else {
                            return Ok(false);
                        };
                        match kind {
                            I32 => *number = Some(thrift.int()?),
                            TRUE | FALSE => *number = Some(i32::from(kind == TRUE)),
                            _ => return Ok(false),
                        }
                        Ok(true)
                    })?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(header)
    }

    /// A number that is not negative.
    fn number(&self, field: usize) -> Read<u32> {
        let found = self.numbers[field].ok_or_else(|| format!("its header lacks field {field}"))?;
        u32::try_from(found).map_err(|_| format!("its header has {found} in field {field}"))
    }

    /// An encoding of values.
    fn encoding(&self, field: usize) -> Read<Encoding> {
        Ok(match self.number(field)? {
            0 => Encoding::PLAIN,
            2 => Encoding::PLAIN_DICTIONARY,
            3 => Encoding::RLE,
            5 => Encoding::DELTA_BINARY_PACKED,
            6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
            8 => Encoding::RLE_DICTIONARY,
            9 => Encoding::BYTE_STREAM_SPLIT,
            // DELTA_BYTE_ARRAY (7) is left out: each value may repeat the one before it, so that a
            // page of a few kB holds texts of many GB.
            other => {
                return Err(format!(
                    "has the encoding {other}, which is not read; write the file with the default \
                     encodings of pandas or polars"
                ));
            }
        })
    }

    /// An encoding of levels.
    fn levels(&self, field: usize) -> Read<Encoding> {
        match self.number(field)? {
            3 => Ok(Encoding::RLE),
            // Also named by files that have no levels.
            #[allow(deprecated)]
            4 => Ok(Encoding::BIT_PACKED),
            other => Err(format!("has levels with the encoding {other}")),
        }
    }
}

impl Pages {
    fn next_page(&mut self) -> Read<Option<Page>> {
        while !self.rest.is_empty() {
            let mut thrift = Thrift::new(&self.file[self.rest.clone()]);
            let header = Header::read(&mut thrift)?;
            let start = self.rest.start + thrift.at();
            if header.stored > self.rest.end - start {
                let left = self.rest.end - start;
                return Err(format!("has {} bytes, its column has {left}", header.stored));
            }
            self.rest.start = start + header.stored;
            if header.kind == INDEX {
                continue;
            }
            let left = self.left.load(Ordering::Relaxed);
            let Some(left) = left.checked_sub(header.size) else {
                return Err("and the pages before it have more bytes, decompressed, than a file \
                            of this size may have; write it as CSV"
                    .into());
            };
            self.left.store(left, Ordering::Relaxed);
            let stored = self.file.slice(start..self.rest.start);
            return self.page(&header, stored).map(Some);
        }
        Ok(None)
    }

    fn page(&mut self, header: &Header, stored: Bytes) -> Read<Page> {
        match (header.kind, header.of) {
            DATA => {
                let buf = self.plain(header, stored, 0)?;
                let (num_values, encoding) = (self.counted(header)?, header.encoding(2)?);
                let def_level_encoding = header.levels(3)?;
                let levels = match self.column.max_def_level() {
                    0 => 0,
                    // Levels of the first Parquet files have no length.
                    _ if def_level_encoding != Encoding::RLE => {
                        return Err("has packed levels, which are not read".into());
                    }
                    _ => 4 + buf.first_chunk().map_or(0, |head| u32::from_le_bytes(*head) as usize),
                };
                self.check_lengths(&buf, levels, num_values, encoding)?;
                Ok(Page::DataPage {
                    buf,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding: header.levels(4)?,
                    statistics: None,
                })
            }
            DATA_2 => {
                let (defined, repeated) = (header.number(5)?, header.number(6)?);
                let levels = (defined as usize).saturating_add(repeated as usize);
                if levels > stored.len() || levels > header.size {
                    return Err(format!("has {levels} bytes of levels"));
                }
                let is_compressed = header.numbers[7] != Some(0);
                let buf = match is_compressed {
                    true => self.plain(header, stored, levels)?,
                    false => stored,
                };
                let (num_values, encoding) = (self.counted(header)?, header.encoding(4)?);
                self.check_lengths(&buf, levels, num_values, encoding)?;
                Ok(Page::DataPageV2 {
                    buf,
                    num_values,
                    encoding,
                    num_nulls: header.number(2)?,
                    num_rows: header.number(3)?,
                    def_levels_byte_len: defined,
                    rep_levels_byte_len: repeated,
                    is_compressed,
                    statistics: None,
                })
            }
            DICTIONARY => {
                let buf = self.plain(header, stored, 0)?;
                let num_values = header.number(1)?;
                // The decoder allocates for all values at once.
                let least = match self.column.physical_type() {
                    Type::BYTE_ARRAY | Type::INT32 | Type::FLOAT => 4,
                    Type::INT64 | Type::DOUBLE => 8,
                    Type::INT96 => 12,
                    Type::FIXED_LEN_BYTE_ARRAY => self.column.type_length().max(1) as usize,
                    Type::BOOLEAN => return Err("is a dictionary of true and false".into()),
                };
                let found = num_values as usize;
                if found > self.values + UNUSED || found.saturating_mul(least) > buf.len() {
                    return Err(format!("has {num_values} values in {} bytes", buf.len()));
                }
                let encoding = header.encoding(2)?;
                Ok(Page::DictionaryPage { buf, num_values, encoding, is_sorted: false })
            }
            (kind, _) => Err(format!("has the unknown kind {kind}")),
        }
    }

    /// Decompresses a page whose first bytes are not compressed.
    fn plain(&self, header: &Header, stored: Bytes, before: usize) -> Read<Bytes> {
        if self.codec == Compression::UNCOMPRESSED {
            return match stored.len() == header.size {
                true => Ok(stored),
                false => Err(format!("has {} bytes, need {}", stored.len(), header.size)),
            };
        }
        // A page of missing values has nothing to compress.
        if header.size == before {
            return Ok(stored.slice(..before));
        }
        let rest = decompress(self.codec, &stored[before..], header.size - before)?;
        if before == 0 {
            return Ok(Bytes::from(rest));
        }
        Ok(Bytes::from([&stored[..before], &rest[..]].concat()))
    }

    /// Number of values of a page, which its column must still have.
    fn counted(&mut self, header: &Header) -> Read<u32> {
        let found = header.number(1)?;
        match self.values.checked_sub(found as usize) {
            Some(left) => self.values = left,
            None => return Err(format!("has {found} values, its column has {}", self.values)),
        }
        Ok(found)
    }

    /// Checks the number of lengths before texts, which the decoder allocates at once.
    fn check_lengths(
        &self,
        page: &[u8],
        levels: usize,
        values: u32,
        encoding: Encoding,
    ) -> Read<()> {
        if encoding != Encoding::DELTA_LENGTH_BYTE_ARRAY {
            return Ok(());
        }
        let mut lengths = Thrift::new(page.get(levels..).unwrap_or_default());
        // Size of a block, number of its parts, number of values.
        let [_, _, count] = [lengths.varint()?, lengths.varint()?, lengths.varint()?];
        match count <= u64::from(values) {
            true => Ok(()),
            false => Err(format!("has {count} lengths of {values} values")),
        }
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.next_page().map_err(|message| ParquetError::General(failed("a page", message)))
    }

    // Only readers of lists, and those that skip rows, ask for these.
    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Err(ParquetError::NYI("pages are read in order".into()))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        Err(ParquetError::NYI("pages are read in order".into()))
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}
