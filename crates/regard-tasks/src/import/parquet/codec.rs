//! Decompression of pages to a size that is known, and to no more.
//!
//! The codecs of the crate `parquet` read gzip and brotli to the end, whatever that is.

use super::Read;
use ::parquet::basic::Compression;
use std::io::Read as _;

/// Most bytes that one byte of Snappy and of LZ4 can stand for: their output is allocated at once.
const SNAPPY: usize = 22;
const LZ4: usize = 256;
/// Window of zstd up to level 19, in bytes. A larger one is allocated for a page of its size only.
const WINDOW: usize = 8 << 20;
/// Bytes of output per byte of input that are reserved for the other codecs.
const RESERVED: usize = 8;

/// Decompresses a page.
pub(super) fn decompress(codec: Compression, stored: &[u8], size: usize) -> Read<Vec<u8>> {
    let most = |ratio: usize| match size <= stored.len().saturating_mul(ratio) {
        true => Ok(()),
        false => Err(format!("{} bytes cannot be {size} bytes compressed", stored.len())),
    };
    let failed = |error: &dyn std::fmt::Display| format!("cannot be decompressed: {error}");
    let plain = match codec {
        Compression::SNAPPY => {
            most(SNAPPY)?;
            let mut plain = vec![0; size];
            let written = snap::raw::Decoder::new().decompress(stored, &mut plain);
            plain.truncate(written.map_err(|error| failed(&error))?);
            plain
        }
        Compression::LZ4_RAW => {
            most(LZ4)?;
            lz4_flex::block::decompress(stored, size).map_err(|error| failed(&error))?
        }
        Compression::GZIP(_) => whole(flate2::read::MultiGzDecoder::new(stored), stored, size)?,
        // The decoder allocates the window that such a stream asks for: up to 1 GB.
        Compression::BROTLI(_) if stored.first().is_some_and(|head| head & 0x7f == 0x11) => {
            return Err("is compressed with a large window of brotli, which is not read".into());
        }
        Compression::BROTLI(_) => {
            whole(brotli_decompressor::Decompressor::new(stored, 4096), stored, size)?
        }
        Compression::ZSTD(_) => {
            let window = size.max(WINDOW) as u64;
            let decoder =
                ruzstd::decoding::StreamingDecoder::new_with_max_window_size(stored, window);
            whole(decoder.map_err(|error| failed(&error))?, stored, size)?
        }
        other => {
            return Err(format!(
                "is compressed with {other}, which is not read; write the file with zstd or snappy"
            ));
        }
    };
    match plain.len() == size {
        true => Ok(plain),
        false => Err(format!("does not have the {size} bytes that its header says")),
    }
}

/// Reads a decoder to its end, or to one byte more than there should be.
fn whole(decoder: impl std::io::Read, stored: &[u8], size: usize) -> Read<Vec<u8>> {
    let mut plain = Vec::with_capacity(size.min(stored.len().saturating_mul(RESERVED)));
    let read = decoder.take(size as u64 + 1).read_to_end(&mut plain);
    read.map(|_| plain).map_err(|error| format!("cannot be decompressed: {error}"))
}
