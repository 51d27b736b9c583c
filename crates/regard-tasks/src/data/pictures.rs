//! One image: PNG or JPEG, or one of an IDX file.
//!
//! The size is read from the header first: nothing larger than [`WIDEST`] by [`WIDEST`] is
//! decoded.

mod transparency;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use regard_models::{Error, Result, checkpoint};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use transparency::on_white;

/// Longest side of an image, in pixels.
pub const WIDEST: u32 = 1 << 14;
/// Longest file, in bytes.
const LONGEST: u64 = 1 << 28;
/// Memory limit of the decoder, in bytes.
const MEMORY: u64 = 1 << 30;

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Rows and columns.
    pub size: [usize; 2],
    /// Channels per pixel: 1 for grey, 3 for RGB.
    pub channels: usize,
    /// Values in row-major order, channels last.
    pub pixels: Vec<u8>,
}

impl Image {
    /// Reads a PNG or a JPEG. Transparent parts are shown on white, see [`Image::decode`].
    pub fn read(path: impl AsRef<Path>) -> Result<Image> {
        let path = path.as_ref();
        super::ledger::note(path);
        Image::read_from(File::open(path).map_err(Error::io(path))?, path)
    }

    /// Reads an image from an open file, such as a pipe, which can be read only once.
    pub(crate) fn read_from(file: impl Read, path: &Path) -> Result<Image> {
        let mut bytes = vec![];
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(Error::io(path))?;
        if bytes.len() as u64 > LONGEST {
            let message = format!("need a file of at most {LONGEST} bytes, got more");
            return Err(Error::file(path, message));
        }
        Image::decode(&bytes).map_err(|message| Error::file(path, message))
    }

    /// Decodes the bytes of a PNG or JPEG file. An image with transparency is laid on white, as
    /// browsers and printed pages show it: the colour that a file stores for transparent pixels is
    /// arbitrary, mostly black.
    pub fn decode(bytes: &[u8]) -> Result<Image, String> {
        let format = match image::guess_format(bytes) {
            Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg)) => format,
            other => {
                let found = match other {
                    _ if bytes.is_empty() => "is empty".to_string(),
                    Ok(other) => format!("is of the type {other:?}"),
                    Err(_) if is_text(bytes) => "is a text".to_string(),
                    Err(_) => "is of no known type of images".to_string(),
                };
                return Err(format!("{found}, need a PNG, a JPEG or an IDX file"));
            }
        };
        if format == ImageFormat::Jpeg {
            // The decoder fills in what is missing at the end; here a truncated file is an error.
            whole_jpeg(bytes)?;
        }
        if format == ImageFormat::Png {
            whole_palette(bytes)?;
        }
        let mut cursor = Cursor::new(bytes);
        let image = decoded(&mut cursor, format).map_err(|message| {
            let (at, all) = (cursor.position(), bytes.len());
            format!("{message} (at byte {at} of {all})")
        })?;
        let size = [image.height() as usize, image.width() as usize];
        let (has_colour, has_alpha) = (image.color().has_color(), image.color().has_alpha());
        let pixels = match (has_colour, has_alpha) {
            (true, false) => image.into_rgb8().into_raw(),
            (false, false) => image.into_luma8().into_raw(),
            (true, true) => on_white::<4>(&image.into_rgba8().into_raw()),
            (false, true) => on_white::<2>(&image.into_luma_alpha8().into_raw()),
        };
        Ok(Image { size, channels: if has_colour { 3 } else { 1 }, pixels })
    }

    /// Converts to this number of channels: RGB to grey as in Pillow (ITU-R 601-2), or grey
    /// repeated in all three.
    pub fn with_channels(&self, channels: usize) -> Result<Image> {
        let pixels = match (self.channels, channels) {
            (from, to) if from == to => self.pixels.clone(),
            (1, 3) => self.pixels.iter().flat_map(|grey| [*grey; 3]).collect(),
            (3, 1) => self.pixels.as_chunks::<3>().0.iter().map(grey).collect(),
            (from, to) => {
                return Err(Error::invalid(format!(
                    "an image of {from} channels cannot become one of {to}; need 1 or 3"
                )));
            }
        };
        Ok(Image { size: self.size, channels, pixels })
    }

    /// Writes a PNG.
    pub fn write_png(&self, path: &Path) -> Result<()> {
        let kind = match self.channels {
            1 => image::ExtendedColorType::L8,
            3 => image::ExtendedColorType::Rgb8,
            other => {
                let message = format!("an image of {other} channels, need 1 or 3");
                return Err(Error::file(path, message));
            }
        };
        let (mut bytes, [rows, columns]) = (vec![], self.size.map(|side| side as u32));
        let encoder = image::codecs::png::PngEncoder::new(&mut bytes);
        image::ImageEncoder::write_image(encoder, &self.pixels, columns, rows, kind)
            .map_err(|e| Error::file(path, e.to_string()))?;
        checkpoint::write_file(path, &bytes)
    }
}

/// Whether the beginning of a file is text without control characters.
fn is_text(bytes: &[u8]) -> bool {
    let first = &bytes[..bytes.len().min(64)];
    let is_plain = |c: char| !c.is_control() || c.is_whitespace();
    // A character may be cut off at the end.
    let valid = first.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    !valid.is_empty() && first.len() - valid.len() < 4 && valid.chars().all(is_plain)
}

fn grey([r, g, b]: &[u8; 3]) -> u8 {
    let sum = 19595 * u32::from(*r) + 38470 * u32::from(*g) + 7471 * u32::from(*b);
    ((sum + 0x8000) >> 16) as u8
}

fn decoded(cursor: &mut Cursor<&[u8]>, format: ImageFormat) -> Result<DynamicImage, String> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(WIDEST);
    limits.max_image_height = Some(WIDEST);
    limits.max_alloc = Some(MEMORY);
    let mut reader = ImageReader::with_format(cursor, format);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(|e| e.to_string())?;
    let (columns, rows) = decoder.dimensions();
    if [columns, rows].iter().any(|side| !(1..=WIDEST).contains(side)) {
        return Err(format!("an image of {columns}×{rows}, need 1×1 to {WIDEST}×{WIDEST}"));
    }
    decoder.set_limits(limits).map_err(|e| e.to_string())?;
    // A camera stores how it was held; a photograph is meant upright.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(|e| e.to_string())?;
    image.apply_orientation(orientation);
    Ok(image)
}

/// Checks that the palette of a PNG, if it has one, consists of whole colours: the decoder relies
/// on it, and stops the program where it does not.
fn whole_palette(bytes: &[u8]) -> Result<(), String> {
    let mut at = 8usize;
    while let Some(chunk) = bytes.get(at..at.saturating_add(8)) {
        let size = u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]) as usize;
        if &chunk[4..] == b"PLTE" && (size == 0 || size > 768 || !size.is_multiple_of(3)) {
            return Err(format!(
                "byte {at}: a palette of {size} bytes, need 3 for each of 1 to 256 colours"
            ));
        }
        at = at.saturating_add(size).saturating_add(12);
    }
    Ok(())
}

/// Checks that a JPEG has its end marker. Segments are traversed, so that the end marker of a
/// thumbnail within the header is not taken for it.
fn whole_jpeg(bytes: &[u8]) -> Result<(), String> {
    let ends = |at: usize| format!("byte {at}: the JPEG ends before its end marker");
    let mut at = 2;
    loop {
        // Image data is skipped up to the next marker.
        while bytes.get(at) != Some(&0xff) {
            at += 1;
            if at >= bytes.len() {
                return Err(ends(bytes.len()));
            }
        }
        match *bytes.get(at + 1).ok_or_else(|| ends(bytes.len()))? {
            0xd9 => return Ok(()),
            // Fill, an escaped 255, restarts and markers without a length.
            0xff => at += 1,
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2,
            _ => {
                let length = bytes.get(at + 2..at + 4).ok_or_else(|| ends(bytes.len()))?;
                at += 2 + usize::from(u16::from_be_bytes([length[0], length[1]])).max(2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::with_file;
    use super::*;
    use image::codecs::jpeg::JpegEncoder;
    use image::codecs::png::PngEncoder;
    use image::{ExtendedColorType, ImageEncoder};

    fn png(size: [u32; 2], pixels: &[u8]) -> Vec<u8> {
        let mut bytes = vec![];
        let encoder = PngEncoder::new(&mut bytes);
        encoder.write_image(pixels, size[1], size[0], ExtendedColorType::Rgb8).unwrap();
        bytes
    }

    fn jpeg(size: [u32; 2], pixels: &[u8]) -> Vec<u8> {
        let mut bytes = vec![];
        let encoder = JpegEncoder::new_with_quality(&mut bytes, 95);
        encoder.write_image(pixels, size[1], size[0], ExtendedColorType::L8).unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Image> {
        with_file("picture", bytes, |path| Image::read(path))
    }

    #[test]
    fn pictures_are_read_whatever_they_are_called() {
        let pixels: Vec<u8> = (0..2 * 3 * 3).map(|i| i * 13).collect();
        let got = read(&png([2, 3], &pixels)).unwrap();
        assert_eq!(got, Image { size: [2, 3], channels: 3, pixels });
        let got = read(&jpeg([4, 5], &[120; 20])).unwrap();
        assert_eq!((got.size, got.channels), ([4, 5], 1));
        assert!(got.pixels.iter().all(|x| x.abs_diff(120) < 3));
        let colours = got.with_channels(3).unwrap();
        assert_eq!((colours.pixels.len(), colours.with_channels(1).unwrap()), (60, got));
        // Pillow's numbers for red, green, blue and a mixture.
        let colours = vec![255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 200, 77];
        let colours = Image { size: [1, 4], channels: 3, pixels: colours };
        assert_eq!(colours.with_channels(1).unwrap().pixels, [76, 150, 29, 129]);
        let written = with_file("out.png", &[], |path| {
            colours.write_png(path).unwrap();
            Image::read(path).unwrap()
        });
        assert_eq!(written, colours);
    }

    #[test]
    fn hostile_files_are_told_with_the_place() {
        let whole = png([8, 8], &[99; 192]);
        // A header with another width and a valid checksum.
        let as_wide_as = |byte: u8| {
            let (mut bytes, mut sum) = (whole.clone(), flate2::Crc::new());
            bytes[16..20].fill(byte);
            sum.update(&bytes[12..29]);
            bytes[29..33].copy_from_slice(&sum.sum().to_be_bytes());
            bytes
        };
        let (empty, huge) = (as_wide_as(0), as_wide_as(0x7f));
        let photo = jpeg([64, 64], &(0..4096).map(|i| (i * 7919 % 251) as u8).collect::<Vec<_>>());
        let rows: [(&[u8], &str); 9] = [
            (b"", "is empty, need a PNG, a JPEG or an IDX file"),
            (b"GIF89a..........", "is of the type Gif, need a PNG, a JPEG or an IDX file"),
            (b"<svg></svg>", "is a text, need a PNG"),
            (b"\x01\x02\xff\xfe", "is of no known type of images, need a PNG"),
            (&whole[..30], "at byte"),
            (&whole[..whole.len() - 20], "at byte"),
            (&empty, "at byte"),
            (&huge, "at byte"),
            (&photo[..photo.len() / 2], "the JPEG ends before its end marker"),
        ];
        for (bytes, wanted) in rows {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.contains(wanted) && error.contains("picture"), "{error}: no {wanted}");
        }
        assert!(read(&photo).is_ok());
        let folder = std::env::temp_dir();
        assert!(Image::read(&folder).is_err(), "a folder is no image");
    }
}
