//! Attention maps: weights over the patches, of one head or of all layers combined.

use super::resize;
use crate::data::Image;
use burn::tensor::Tensor;
use regard_attention::backend;
use regard_models::vit::Config;
use regard_models::{Error, Result};

/// Minimum width and height of a drawn image, in pixels.
const DRAWN: usize = 448;

/// Attention weights of one image.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMaps {
    /// Weights of each layer, `[H, T, T]`: queries, then keys.
    pub layers: Vec<Vec<f32>>,
    /// Number of heads, `H`.
    pub heads: usize,
    /// Number of tokens, `T`.
    pub tokens: usize,
    /// Rows and columns of patches.
    pub grid: [usize; 2],
    /// Number of tokens before the patches: 1 with a `[CLS]` token, else 0.
    pub first_patch: usize,
}

impl AttentionMaps {
    /// Copies the weights `[1, H, T, T]` of each layer.
    pub(super) fn new(weights: Vec<Tensor<4>>, config: &Config) -> AttentionMaps {
        let [_, heads, tokens, _] = weights.first().map_or([0; 4], Tensor::dims);
        let numbers = |x: Tensor<4>| {
            let mut numbers = vec![];
            backend::numbers(x, &mut numbers);
            numbers
        };
        let layers = weights.into_iter().map(numbers).collect();
        AttentionMaps {
            layers,
            heads,
            tokens,
            grid: config.grid(),
            first_patch: config.first_patch(),
        }
    }

    /// Returns the attention of the `[CLS]` token on each patch in one head, row by row. With mean
    /// pooling it is the mean over all patches. With `[CLS]`, the rest to 1 is its attention on
    /// itself.
    pub fn head(&self, layer: usize, head: usize) -> Result<Vec<f64>> {
        let (layers, heads) = (self.layers.len(), self.heads);
        if layer >= layers || head >= heads {
            return Err(Error::invalid(format!(
                "head: got {layer}.{head}, the model has layers 0 to {} with heads 0 to {}",
                layers.saturating_sub(1),
                heads.saturating_sub(1)
            )));
        }
        let square = self.tokens * self.tokens;
        let weights = &self.layers[layer][head * square..(head + 1) * square];
        Ok(self.speaker(&weights.iter().map(|x| f64::from(*x)).collect::<Vec<_>>()))
    }

    /// Returns the contribution of each patch to the prediction over all heads and layers:
    /// [`rollout`] from the pooled tokens.
    pub fn rollout(&self) -> Vec<f64> {
        self.speaker(&rollout(&self.layers, self.heads, self.tokens))
    }

    /// Returns the row of the pooled tokens, restricted to the patches.
    fn speaker(&self, weights: &[f64]) -> Vec<f64> {
        let (tokens, first) = (self.tokens, self.first_patch);
        let rows = if first > 0 { 0..1 } else { 0..tokens };
        let count = rows.len() as f64;
        let mean = |to: usize| rows.clone().map(|from| weights[from * tokens + to]).sum::<f64>();
        (first..tokens).map(|to| mean(to) / count).collect()
    }
}

/// Computes attention rollout (Abnar and Zuidema 2020, arXiv:2005.00928): the contribution of each
/// token to each token through all layers, `A_L · … · A_1` with `A = (W̄ + I)/2`, where `W̄` is the
/// mean of the heads and `I` accounts for the residual connections. Rows sum to 1.
///
/// # Shapes
/// `layers`: each `[H, T, T]` → `[T, T]`
pub fn rollout(layers: &[Vec<f32>], heads: usize, tokens: usize) -> Vec<f64> {
    let mut all: Vec<f64> =
        (0..tokens * tokens).map(|at| f64::from(u8::from(at / tokens == at % tokens))).collect();
    for weights in layers {
        let mut next = vec![0.0; tokens * tokens];
        for (from, row) in next.chunks_exact_mut(tokens).enumerate() {
            for through in 0..tokens {
                let of = |head: usize| weights[(head * tokens + from) * tokens + through];
                let looked = (0..heads).map(|head| f64::from(of(head))).sum::<f64>();
                let around = f64::from(u8::from(from == through));
                let share = 0.5 * (looked / heads as f64 + around);
                let before = &all[through * tokens..(through + 1) * tokens];
                row.iter_mut().zip(before).for_each(|(sum, x)| *sum += share * x);
            }
        }
        all = next;
    }
    all
}

/// Draws a map over the patches of an enlarged image: dark where it is lowest, the full image where
/// it is highest, with a heat colour scale between.
///
/// # Panics
/// If the map is not of the grid's size.
pub fn overlay(picture: &Image, map: &[f64], grid: [usize; 2]) -> Result<Image> {
    assert_eq!(map.len(), grid[0] * grid[1], "overlay: one value per patch");
    let most = map.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let pixels = map.iter().map(|x| (x.max(0.0) / most * 255.0).round() as u8).collect();
    let map = Image { size: grid, channels: 1, pixels };
    // The shorter side becomes large enough, within a limit for very long images.
    let [short, long] = [usize::min, usize::max].map(|of| of(picture.size[0], picture.size[1]));
    let times = DRAWN.div_ceil(short.max(1)).min(4 * DRAWN / long.max(1)).max(1);
    let size = picture.size.map(|side| side * times);
    let (map, below) = (resize(&map, size), enlarged(&picture.with_channels(3)?, times));
    let lit = |(pixel, heat): (&[u8; 3], &u8)| {
        let (heat, glow) = (f64::from(*heat) / 255.0, glow(f64::from(*heat) / 255.0));
        let mixed = |c: usize| {
            let image = f64::from(pixel[c]) * (0.35 + 0.4 * heat);
            (image + 0.5 * heat * glow[c]).min(255.0) as u8
        };
        [mixed(0), mixed(1), mixed(2)]
    };
    let pixels = below.as_chunks::<3>().0.iter().zip(&map.pixels).flat_map(lit).collect();
    Ok(Image { size, channels: 3, pixels })
}

/// Returns a colour from dark red over orange to bright yellow.
fn glow(heat: f64) -> [f64; 3] {
    [255.0 * (3.0 * heat).min(1.0), 255.0 * (1.5 * heat - 0.5).clamp(0.0, 1.0), 90.0 * heat * heat]
}

/// Repeats each pixel `times` times in both directions, so that small images keep sharp edges.
fn enlarged(picture: &Image, times: usize) -> Vec<u8> {
    let ([rows, columns], channels) = (picture.size, picture.channels);
    let mut pixels = Vec::with_capacity(rows * columns * channels * times * times);
    for row in picture.pixels.chunks_exact(columns * channels) {
        let wide: Vec<u8> =
            row.chunks_exact(channels).flat_map(|pixel| pixel.repeat(times)).collect();
        (0..times).for_each(|_| pixels.extend_from_slice(&wide));
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_pixels_becomes_no_giant() {
        let line = Image { size: [1, 1000], channels: 1, pixels: vec![7; 1000] };
        let drawn = overlay(&line, &[0.5; 4], [2, 2]).unwrap();
        assert!(drawn.pixels.len() < 4_000_000, "{:?}", drawn.size);
        let dot = Image { size: [1, 1], channels: 1, pixels: vec![7] };
        assert_eq!(overlay(&dot, &[0.5; 4], [2, 2]).unwrap().size, [DRAWN; 2]);
    }

    /// Rows of weights that sum to 1, with different values.
    fn layers(count: usize, heads: usize, tokens: usize) -> Vec<Vec<f32>> {
        let layer = |l: usize| {
            let row = |r: usize| {
                let raw: Vec<f32> =
                    (0..tokens).map(|t| 1.0 + ((r * 7 + t * 5 + l * 3) % 11) as f32).collect();
                let sum: f32 = raw.iter().sum();
                raw.into_iter().map(move |x| x / sum)
            };
            (0..heads * tokens).flat_map(row).collect()
        };
        (0..count).map(layer).collect()
    }

    #[test]
    fn rows_of_a_rollout_sum_to_one() {
        for (count, heads, tokens) in [(1, 1, 1), (3, 2, 5), (12, 4, 50)] {
            let all = rollout(&layers(count, heads, tokens), heads, tokens);
            for row in all.chunks_exact(tokens) {
                let sum: f64 = row.iter().sum();
                assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                assert!(row.iter().all(|x| *x >= 0.0));
            }
        }
    }

    #[test]
    fn a_rollout_follows_what_was_looked_at() {
        // Token 0 attends to 1 in the second layer, and 1 to 2 in the first.
        let first = vec![1., 0., 0., 0., 0., 1., 0., 0., 1.];
        let second = vec![0., 1., 0., 0., 1., 0., 0., 0., 1.];
        let all = rollout(&[first, second], 1, 3);
        // Half of each step is the residual: 0 keeps 1/2, has 1/4 of token 1 and 1/4 of token 2.
        assert_eq!(all[..3], [0.5, 0.25, 0.25]);
    }

    #[test]
    fn maps_are_of_who_speaks() {
        let layers = layers(2, 2, 7);
        let with_token =
            AttentionMaps { layers, heads: 2, tokens: 7, grid: [2, 3], first_patch: 1 };
        let map = with_token.head(1, 1).unwrap();
        let row = &with_token.layers[1][49..56];
        assert_eq!(map, row[1..].iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
        assert_eq!(with_token.rollout().len(), 6);
        let alone = AttentionMaps { grid: [1, 7], first_patch: 0, ..with_token.clone() };
        assert!((alone.rollout().iter().sum::<f64>() - 1.0).abs() < 1e-6);
        let error = with_token.head(2, 0).unwrap_err().to_string();
        assert!(error.contains("got 2.0") && error.contains("layers 0 to 1"), "{error}");
    }

    #[test]
    fn a_map_is_drawn_over_the_whole_image() {
        let picture = Image { size: [4, 6], channels: 1, pixels: vec![100; 24] };
        let drawn = overlay(&picture, &[0.0, 0.0, 0.0, 1.0], [2, 2]).unwrap();
        assert_eq!((drawn.size, drawn.channels), ([448, 672], 3));
        assert_eq!(drawn.pixels.len(), 448 * 672 * 3);
        // Bright where the map is high, dark elsewhere.
        assert_eq!(drawn.pixels[..3], [35, 35, 35]);
        let last = &drawn.pixels[drawn.pixels.len() - 3..];
        assert!(last[0] > 150 && last[2] < last[0], "{last:?}");
    }
}
