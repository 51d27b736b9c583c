//! WAV files: PCM of 8, 16, 24 and 32 bits, floats of 32 and 64 bits, plain or extensible, any
//! number of channels, which are mixed down to one.
//!
//! Files are not trusted: every length is checked against the bytes that are there, and errors
//! give the position in the file.

use super::{FASTEST, SLOWEST, Sound};
use regard_models::{Error, Result};
use std::io::Read;
use std::path::Path;

/// Type of the samples of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sample {
    /// Unsigned 8 bits, with zero at 128.
    Byte,
    /// Signed integer of this number of bytes.
    Integer(usize),
    Single,
    Double,
}

/// Contents of the chunk `fmt `.
#[derive(Clone, Copy, Debug)]
struct Format {
    sample: Sample,
    channels: usize,
    rate: u32,
}

const PCM: u16 = 1;
const FLOAT: u16 = 3;
const EXTENSIBLE: u16 = 0xfffe;

/// Last 14 bytes of the identifier of an extensible format; the first two are one of the formats
/// above.
const FAMILY: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];

/// Largest number of channels.
const CHANNELS: usize = 256;

/// Length that a program writes to a pipe, where it does not know the length.
const UNKNOWN: usize = 0xffff_ffff;

/// Longest file in bytes: an hour and a half at the quality of a CD.
const LONGEST: u64 = 1 << 30;

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Sound> {
    let path = path.as_ref();
    // A pipe is accepted too, but the length is limited.
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut bytes = vec![];
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(Error::io(path))?;
    if bytes.len() as u64 > LONGEST {
        return Err(Error::file(path, format!("has more than {LONGEST} bytes; split it")));
    }
    parse(&bytes).map_err(|message| Error::file(path, message))
}

/// Parses the bytes of a file; an error says what is wrong and where.
pub fn parse(bytes: &[u8]) -> Result<Sound, String> {
    if bytes.len() < 12 || &bytes[..4] != b"RIFF" || &bytes[8..12] != b"WAVE" {
        let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(12)]).into_owned();
        return Err(format!(
            "is not a WAV file: it begins with {begins:?}, need RIFF, a length and WAVE"
        ));
    }
    let (mut at, mut format) = (12, None);
    while at + 8 <= bytes.len() {
        let (name, stated) = (&bytes[at..at + 4], u32_at(bytes, at + 4) as usize);
        let (from, there) = (at + 8, bytes.len() - at - 8);
        let is_data = name == b"data";
        let length = if is_data && stated == UNKNOWN { there } else { stated };
        if length > there {
            return Err(format!(
                "is cut off: the chunk {:?} at byte {at} should have {length} bytes, {there} are \
                 there",
                String::from_utf8_lossy(name)
            ));
        }
        let chunk = &bytes[from..from + length];
        match (name, format) {
            (b"fmt ", _) => format = Some(read_format(chunk, from)?),
            (b"data", Some(format)) => return samples(chunk, from, format),
            (b"data", None) => {
                return Err(format!("has samples at byte {at}, but no chunk \"fmt \" before them"));
            }
            _ => {}
        }
        // Chunks begin at even offsets.
        at = from + length + length % 2;
    }
    Err(format!("has no samples: no chunk \"data\" up to its end at byte {}", bytes.len()))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn read_format(chunk: &[u8], at: usize) -> Result<Format, String> {
    let short = |need| {
        Err(format!("the format at byte {at} has {} bytes, need at least {need}", chunk.len()))
    };
    if chunk.len() < 16 {
        return short(16);
    }
    let (mut codec, channels) = (u16_at(chunk, 0), usize::from(u16_at(chunk, 2)));
    let (rate, bits) = (u32_at(chunk, 4), u16_at(chunk, 14));
    let block = usize::from(u16_at(chunk, 12));
    if codec == EXTENSIBLE {
        if chunk.len() < 40 {
            return short(40);
        }
        codec = match chunk[26..40] == FAMILY {
            true => u16_at(chunk, 24),
            false => return Err(format!("the format at byte {} is unknown", at + 24)),
        };
    }
    let sample = match (codec, bits) {
        (PCM, 8) => Sample::Byte,
        (PCM, 16 | 24 | 32) => Sample::Integer(usize::from(bits / 8)),
        (FLOAT, 32) => Sample::Single,
        (FLOAT, 64) => Sample::Double,
        _ => {
            return Err(format!(
                "the format at byte {at} is number {codec} with {bits} bits; need PCM (1) with 8, \
                 16, 24 or 32 bits, or floats (3) with 32 or 64. Convert it, for example with \
                 ffmpeg -i IN -c:a pcm_s16le OUT.wav"
            ));
        }
    };
    if !(1..=CHANNELS).contains(&channels) {
        return Err(format!("says {channels} channels at byte {}, need 1 to {CHANNELS}", at + 2));
    }
    if !(SLOWEST..=FASTEST).contains(&rate) {
        return Err(format!(
            "says {rate} samples a second at byte {}, need {SLOWEST} to {FASTEST}",
            at + 4
        ));
    }
    if block != channels * sample.bytes() {
        return Err(format!(
            "says {block} bytes for all channels at byte {}, need {channels} times {}",
            at + 12,
            sample.bytes()
        ));
    }
    Ok(Format { sample, channels, rate })
}

impl Sample {
    fn bytes(self) -> usize {
        match self {
            Sample::Byte => 1,
            Sample::Integer(bytes) => bytes,
            Sample::Single => 4,
            Sample::Double => 8,
        }
    }

    /// Decodes one sample, scaled to −1 to 1.
    fn read(self, bytes: &[u8]) -> f64 {
        match self {
            Sample::Byte => (f64::from(bytes[0]) - 128.0) / 128.0,
            Sample::Integer(width) => {
                // In the high bytes of 32 bits, so that the sign bit is in its position.
                let mut wide = [0; 4];
                wide[4 - width..].copy_from_slice(bytes);
                f64::from(i32::from_le_bytes(wide)) / 2_147_483_648.0
            }
            Sample::Single => f64::from(f32::from_le_bytes(bytes.try_into().expect("four"))),
            Sample::Double => f64::from_le_bytes(bytes.try_into().expect("eight")),
        }
    }
}

/// Largest magnitude of a sample. Samples are between −1 and 1; computed ones may exceed that, but
/// not by this much.
const LOUDEST: f32 = 1e6;

fn samples(chunk: &[u8], at: usize, format: Format) -> Result<Sound, String> {
    let Format { sample, channels, rate } = format;
    let (width, all) = (sample.bytes(), sample.bytes() * channels);
    if chunk.len() < all {
        return Err(format!("holds no sound: {} bytes of samples at byte {at}", chunk.len()));
    }
    if !chunk.len().is_multiple_of(all) {
        return Err(format!(
            "is cut off: {} bytes of samples at byte {at} are not a multiple of {all}",
            chunk.len()
        ));
    }
    let mut samples = Vec::with_capacity(chunk.len() / all);
    for (i, moment) in chunk.chunks_exact(all).enumerate() {
        let sum: f64 = moment.chunks_exact(width).map(|bytes| sample.read(bytes)).sum();
        let mean = (sum / channels as f64) as f32;
        if !mean.is_finite() {
            return Err(format!("sample {i} (byte {}) is {mean}, not a number", at + i * all));
        }
        if mean.abs() > LOUDEST {
            let place = at + i * all;
            return Err(format!(
                "sample {i} (byte {place}) is {mean}, the largest accepted magnitude is {LOUDEST}; samples normally lie in −1 to 1"
            ));
        }
        samples.push(mean);
    }
    Ok(Sound { samples, rate })
}

/// Encodes a sound as a WAV file of 16-bit PCM. Samples beyond ±1 are clipped.
pub fn encode(sound: &Sound) -> Vec<u8> {
    let length = 2 * sound.samples.len() as u32;
    let mut bytes = vec![];
    bytes.extend(b"RIFF");
    bytes.extend((36 + length).to_le_bytes());
    bytes.extend(b"WAVEfmt ");
    bytes.extend(16u32.to_le_bytes());
    bytes.extend([PCM, 1].map(u16::to_le_bytes).concat());
    bytes.extend([sound.rate, 2 * sound.rate].map(u32::to_le_bytes).concat());
    bytes.extend([2u16, 16].map(u16::to_le_bytes).concat());
    bytes.extend(b"data");
    bytes.extend(length.to_le_bytes());
    let integer = |x: &f32| ((x * 32768.0).round().clamp(-32768.0, 32767.0) as i16).to_le_bytes();
    bytes.extend(sound.samples.iter().flat_map(integer));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of one chunk of format and one of samples.
    fn file(codec: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
        let block = channels * bits / 8;
        let mut bytes = b"RIFF....WAVEfmt \x10\0\0\0".to_vec();
        bytes.extend([codec, channels].map(u16::to_le_bytes).concat());
        bytes.extend([8000u32, 8000 * u32::from(block)].map(u32::to_le_bytes).concat());
        bytes.extend([block, bits].map(u16::to_le_bytes).concat());
        bytes.extend(b"LIST\x03\0\0\0abc\0data");
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(data);
        bytes
    }

    fn heard(codec: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<f32> {
        let sound = parse(&file(codec, channels, bits, data)).unwrap();
        assert_eq!(sound.rate, 8000);
        sound.samples
    }

    #[test]
    fn all_kinds_of_samples() {
        assert_eq!(heard(1, 1, 8, &[0, 128, 192]), [-1.0, 0.0, 0.5]);
        assert_eq!(heard(1, 1, 16, &[0, 0x80, 0, 0x40]), [-1.0, 0.5]);
        assert_eq!(heard(1, 1, 24, &[0, 0, 0xc0, 0, 0, 0x20]), [-0.5, 0.25]);
        assert_eq!(heard(1, 1, 32, &[0, 0, 0, 0x80]), [-1.0]);
        assert_eq!(heard(3, 1, 32, &0.3f32.to_le_bytes()), [0.3]);
        assert_eq!(heard(3, 1, 64, &0.3f64.to_le_bytes()), [0.3]);
        assert_eq!(heard(1, 2, 8, &[0, 128, 192, 192]), [-0.5, 0.5]);
    }

    #[test]
    fn extensible_formats() {
        let plain = file(1, 1, 16, &[0, 0x40]);
        let mut bytes = b"RIFF....WAVEfmt \x28\0\0\0\xfe\xff".to_vec();
        bytes.extend(&plain[22..36]);
        bytes.extend([22, 0, 16, 0, 4, 0, 0, 0, 1, 0]);
        bytes.extend(FAMILY);
        bytes.extend(&plain[48..]);
        assert_eq!(parse(&bytes).unwrap().samples, [0.5]);
        bytes[50] = 1;
        assert!(parse(&bytes).unwrap_err().contains("byte 44"));
    }

    #[test]
    fn what_is_written_can_be_read() {
        let samples: Vec<f32> = (-50..50).map(|i| i as f32 / 64.0).collect();
        let sound = Sound { samples, rate: 16000 };
        assert_eq!(parse(&encode(&sound)).unwrap(), sound);
        let loud = Sound { samples: vec![2.0, -3.0], rate: 1000 };
        assert_eq!(parse(&encode(&loud)).unwrap().samples, [32767.0 / 32768.0, -1.0]);
    }

    #[test]
    fn an_unknown_length_goes_to_the_end() {
        let mut bytes = file(1, 1, 16, &[0, 0x40, 0, 0x40]);
        let at = bytes.len() - 8;
        bytes[at..at + 4].fill(0xff);
        assert_eq!(parse(&bytes).unwrap().samples, [0.5, 0.5]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let error = |bytes: &[u8]| parse(bytes).unwrap_err();
        let whole = file(1, 1, 16, &[1, 2, 3, 4]);
        for cut in 0..whole.len() {
            let told = error(&whole[..cut]);
            assert!(!told.is_empty(), "{cut}");
        }
        assert!(error(&whole[..whole.len() - 1]).contains("at byte 48 should have 4 bytes, 3 are"));
        assert!(error(b"ID3 and more of that").contains("begins with \"ID3 and more\""));
        assert!(error(&file(1, 1, 16, &[])).contains("no sound: 0 bytes of samples at byte 56"));
        assert!(error(&file(1, 1, 16, &[1, 2, 3])).contains("not a multiple of 2"));
        assert!(error(&file(85, 1, 0, &[1])).contains("number 85 with 0 bits"));
        assert!(error(&file(1, 0, 16, &[1, 2])).contains("0 channels at byte 22"));
        let told = error(&file(3, 1, 32, &[0f32, f32::NAN].map(f32::to_le_bytes).concat()));
        assert!(told.contains("sample 1 (byte 60) is NaN"), "{told}");
        let told = error(&file(3, 1, 32, &[0.5f32, -1e19].map(f32::to_le_bytes).concat()));
        assert!(told.contains("sample 1 (byte 60) is -1") && told.contains("−1 to 1"), "{told}");
        let mut fast = whole.clone();
        fast[24..28].fill(0xff);
        assert!(error(&fast).contains("samples a second at byte 24"));
        let mut odd = whole;
        odd[32] = 3;
        assert!(error(&odd).contains("3 bytes for all channels at byte 32"));
    }
}
