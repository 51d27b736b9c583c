//! Element types of GGUF: blocks of 1, 32 or 256 elements, and the floats that they stand for.

use half::f16;
use regard_attention::quant::Bits;

/// Element type of a tensor that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// 32 values of 8 bits and a scale.
    Q8_0,
    /// 32 values of 4 bits and a scale.
    Q4_0,
    /// 256 values of 4 bits; 8 scales and offsets of 6 bits.
    Q4K,
    /// 256 values of 5 bits; 8 scales and offsets of 6 bits.
    Q5K,
    /// 256 values of 6 bits; 16 scales of 8 bits.
    Q6K,
}

/// A type: its number in files, its name, its block and the size of a block in bytes.
struct Row(Kind, u32, &'static str, usize, usize);

/// All types that are read.
const ROWS: [Row; 8] = [
    Row(Kind::F32, 0, "F32", 1, 4),
    Row(Kind::F16, 1, "F16", 1, 2),
    Row(Kind::Bf16, 30, "BF16", 1, 2),
    Row(Kind::Q8_0, 8, "Q8_0", 32, 34),
    Row(Kind::Q4_0, 2, "Q4_0", 32, 18),
    Row(Kind::Q4K, 12, "Q4_K", 256, 144),
    Row(Kind::Q5K, 13, "Q5_K", 256, 176),
    Row(Kind::Q6K, 14, "Q6_K", 256, 210),
];

/// Numbers and names of types that are not read.
const OTHERS: [(u32, &str); 25] = [
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

/// Elements of a block of the types with K in their name.
const WIDE: usize = 256;

impl Kind {
    /// Returns the type of a number in a file.
    ///
    /// # Errors
    /// If it is not read, with its name and those that are.
    pub fn numbered(number: u32) -> Result<Kind, String> {
        if let Some(Row(kind, ..)) = ROWS.iter().find(|row| row.1 == number) {
            return Ok(*kind);
        }
        let other = OTHERS.iter().find(|(known, _)| *known == number);
        let got = other.map_or(format!("the unknown type {number}"), |(_, name)| name.to_string());
        let names: Vec<&str> = ROWS.iter().map(|row| row.2).collect();
        Err(format!("is {got}, need one of {}", names.join(", ")))
    }

    /// Types that are written.
    pub const WRITTEN: [Kind; 4] = [Kind::F32, Kind::F16, Kind::Q8_0, Kind::Q4_0];

    fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.0 == self).expect("every type has a row")
    }

    /// Returns the number in files.
    pub fn number(self) -> u32 {
        self.row().1
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Returns the number of elements of a block, and its size in bytes.
    pub fn block(self) -> (usize, usize) {
        (self.row().3, self.row().4)
    }

    /// Whether values share a scale.
    pub fn is_quantized(self) -> bool {
        self.block().0 > 1
    }

    /// Returns the bits of the kernels that have the same blocks, if any.
    pub fn bits(self) -> Option<Bits> {
        match self {
            Kind::Q8_0 => Some(Bits::Int8Groups),
            Kind::Q4_0 => Some(Bits::Int4),
            _ => None,
        }
    }

    /// Converts whole blocks to single precision.
    ///
    /// # Panics
    /// If `bytes` are not whole blocks, or `to` does not have exactly their elements.
    pub fn floats(self, bytes: &[u8], to: &mut [f32]) {
        let (block, size) = self.block();
        assert_eq!(
            bytes.len().is_multiple_of(size).then_some(bytes.len() / size * block),
            Some(to.len())
        );
        let blocks = bytes.chunks_exact(size).zip(to.chunks_exact_mut(block));
        match self {
            Kind::F32 => blocks.for_each(|(b, to)| {
                to[0] = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }),
            Kind::F16 => blocks.for_each(|(b, to)| to[0] = half(b, 0)),
            Kind::Bf16 => blocks.for_each(|(b, to)| {
                to[0] = f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16);
            }),
            Kind::Q8_0 => blocks.for_each(|(b, to)| q8_0(b, to)),
            Kind::Q4_0 => blocks.for_each(|(b, to)| q4_0(b, to)),
            Kind::Q4K => blocks.for_each(|(b, to)| q4_k(b, to)),
            Kind::Q5K => blocks.for_each(|(b, to)| q5_k(b, to)),
            Kind::Q6K => blocks.for_each(|(b, to)| q6_k(b, to)),
        }
    }
}

fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

/// A scale, then 32 signed bytes.
fn q8_0(block: &[u8], to: &mut [f32]) {
    let scale = half(block, 0);
    for (x, value) in to.iter_mut().zip(&block[2..]) {
        *x = scale * f32::from(*value as i8);
    }
}

/// A scale, then bytes of elements `i` and `i + 16`, each plus 8.
fn q4_0(block: &[u8], to: &mut [f32]) {
    let scale = half(block, 0);
    for (i, byte) in block[2..].iter().enumerate() {
        to[i] = scale * (f32::from(byte & 15) - 8.0);
        to[i + 16] = scale * (f32::from(byte >> 4) - 8.0);
    }
}

/// Scale and offset of a group of 32: six bits each, of which groups 4 to 7 have the upper two in
/// the bytes of the groups before them.
fn scale_and_offset(packed: &[u8], group: usize) -> (f32, f32) {
    let (scale, offset) = match group {
        0..4 => (packed[group] & 63, packed[group + 4] & 63),
        _ => (
            packed[group + 4] & 15 | packed[group - 4] >> 6 << 4,
            packed[group + 4] >> 4 | packed[group] >> 6 << 4,
        ),
    };
    (f32::from(scale), f32::from(offset))
}

/// Scale of the scales, scale of the offsets, 12 bytes of both; bytes of elements `i` and `i + 32`
/// of every 64.
fn q4_k(block: &[u8], to: &mut [f32]) {
    let (d, least) = (half(block, 0), half(block, 2));
    for (group, to) in to.chunks_exact_mut(32).enumerate() {
        let (scale, offset) = scale_and_offset(&block[4..16], group);
        let (scale, offset) = (d * scale, least * offset);
        let bytes = &block[16 + group / 2 * 32..];
        for (x, byte) in to.iter_mut().zip(bytes) {
            *x = scale * f32::from(byte >> (group % 2 * 4) & 15) - offset;
        }
    }
}

/// As [`q4_k`], with the fifth bits in 32 bytes before the others: bit `g` of byte `i` is that of
/// element `i` of group `g`.
fn q5_k(block: &[u8], to: &mut [f32]) {
    let (d, least) = (half(block, 0), half(block, 2));
    for (group, to) in to.chunks_exact_mut(32).enumerate() {
        let (scale, offset) = scale_and_offset(&block[4..16], group);
        let (scale, offset) = (d * scale, least * offset);
        let bytes = &block[48 + group / 2 * 32..];
        for (i, (x, byte)) in to.iter_mut().zip(bytes).enumerate() {
            let low = byte >> (group % 2 * 4) & 15;
            let high = block[16 + i] >> group & 1;
            *x = scale * f32::from(low | high << 4) - offset;
        }
    }
}

/// Lower four bits of all, upper two bits of all, 16 scales of 8 bits, and their scale. Of each 128
/// elements, bytes hold the lower bits of `i` and `i + 64`, and the upper bits of `i`, `i + 32`,
/// `i + 64` and `i + 96`.
fn q6_k(block: &[u8], to: &mut [f32]) {
    let d = half(block, 208);
    for (i, x) in to.iter_mut().enumerate().take(WIDE) {
        let (part, within) = (i / 128, i % 128);
        let low = block[part * 64 + within % 64] >> (within / 64 * 4) & 15;
        let high = block[128 + part * 32 + within % 32] >> (within / 32 * 2) & 3;
        let scale = f32::from(block[192 + i / 16] as i8);
        *x = d * scale * f32::from((low | high << 4) as i8 - 32);
    }
}
