//! Images with transparent parts.

/// Lays pixels of `N` values, the last of which is their opacity, on white.
pub(super) fn on_white<const N: usize>(pixels: &[u8]) -> Vec<u8> {
    let mut laid = Vec::with_capacity(pixels.len() / N * (N - 1));
    for pixel in pixels.as_chunks::<N>().0 {
        let opacity = u32::from(pixel[N - 1]);
        let lay = |value: &u8| (u32::from(*value) * opacity + 255 * (255 - opacity) + 127) / 255;
        laid.extend(pixel[..N - 1].iter().map(|value| lay(value) as u8));
    }
    laid
}

#[cfg(test)]
mod tests {
    use super::super::Image;
    use image::codecs::png::PngEncoder;
    use image::{ExtendedColorType, ImageEncoder};

    #[test]
    fn transparent_pixels_are_white() {
        let encoded = |pixels: &[u8], kind: ExtendedColorType| {
            let mut bytes = vec![];
            PngEncoder::new(&mut bytes).write_image(pixels, 3, 1, kind).unwrap();
            bytes
        };
        // Opaque, half transparent and transparent; the colours of the last are arbitrary.
        let colour = [10, 20, 30, 255, 0, 100, 200, 128, 0, 0, 0, 0];
        let got = Image::decode(&encoded(&colour, ExtendedColorType::Rgba8)).unwrap();
        assert_eq!((got.size, got.channels), ([1, 3], 3));
        assert_eq!(got.pixels, [10, 20, 30, 127, 177, 227, 255, 255, 255]);
        let grey = [40, 255, 0, 51, 7, 0];
        let got = Image::decode(&encoded(&grey, ExtendedColorType::La8)).unwrap();
        assert_eq!((got.channels, &got.pixels[..]), (1, &[40, 204, 255][..]));
        let got = Image::decode(&palette()).unwrap();
        assert_eq!((got.channels, &got.pixels[..]), (3, &[9, 8, 7, 255, 255, 255][..]));
    }

    /// A PNG of two pixels by a palette whose second colour, black, is transparent.
    fn palette() -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut chunk = |kind: &[u8; 4], data: &[u8]| {
            let content = [&kind[..], data].concat();
            let mut sum = flate2::Crc::new();
            sum.update(&content);
            bytes.extend((data.len() as u32).to_be_bytes());
            bytes.extend(content);
            bytes.extend(sum.sum().to_be_bytes());
        };
        chunk(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 1, 8, 3, 0, 0, 0]);
        chunk(b"PLTE", &[9, 8, 7, 0, 0, 0]);
        chunk(b"tRNS", &[255, 0]);
        let mut packed = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &[0, 0, 1]).unwrap();
        chunk(b"IDAT", &packed.finish().unwrap());
        chunk(b"IEND", &[]);
        bytes
    }
}
