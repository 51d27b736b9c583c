//! From pixels to tokens: the stem, the patches, the token that speaks for the image, and where each
//! of them stands.

use super::{Config, Vit};
use crate::checkpoint::Binder;
use burn::tensor::{Device, Tensor};
use regard_attention::Mode;
use regard_attention::layers::sinusoidal;

impl Vit {
    /// From pixels to tokens: `[B, C, H, W]` → `[B, T, M]`
    pub(super) fn embed(&self, pixels: Tensor<4>, mode: Mode) -> Tensor<3> {
        let Config { hidden_size: m, num_channels, image_size, .. } = self.config;
        let ([b, c, h, w], [high, wide]) = (pixels.dims(), image_size.both());
        assert_eq!([c, h, w], [num_channels, high, wide], "images of [channels, rows, columns]");
        // One channel stands where it should already.
        let mut x = match c {
            1 => pixels.reshape([b, h, w, c]),
            _ => pixels.permute([0, 2, 3, 1]),
        };
        for layer in &self.stem {
            x = layer.forward(x);
        }
        let x = self.patches.forward(x);
        let [_, rows, columns, _] = x.dims();
        let mut x = x.reshape([b, rows * columns, m]);
        if let Some(cls) = &self.cls {
            let cls = cls.val().unsqueeze::<3>().expand([b, 1, m]);
            x = Tensor::cat(vec![cls, x], 1);
        }
        let places = match &self.positions {
            Some(table) => table.val(),
            None => sines([rows, columns], m, self.config.first_patch(), &x.device()),
        };
        self.dropout.forward(x + places.unsqueeze(), mode)
    }

    pub(super) fn bind_embeddings(&mut self, b: &mut Binder) {
        let m = self.config.hidden_size;
        if let Some(cls) = &mut self.cls {
            b.shaped("cls_token", &[1, 1, m], cls);
        }
        if let Some(positions) = &mut self.positions {
            let [tokens, _] = positions.dims();
            b.shaped("position_embeddings", &[1, tokens, m], positions);
        }
        for (i, layer) in self.stem.iter_mut().enumerate() {
            b.image_convolution(&format!("stem.{i}"), layer);
        }
        b.image_convolution("patch_embeddings.projection", &mut self.patches);
    }
}

/// The sines of rows in the first half of each vector, those of columns in the second; a token
/// before the patches stands nowhere.
///
/// # Shapes
/// `[first + rows·columns, M]`
fn sines([rows, columns]: [usize; 2], m: usize, first: usize, device: &Device) -> Tensor<2> {
    let half = m / 2;
    let shape = [rows, columns, half];
    let of_rows = sinusoidal(rows, half, device).reshape([rows, 1, half]).expand(shape);
    let of_columns = sinusoidal(columns, half, device).reshape([1, columns, half]).expand(shape);
    let table = Tensor::cat(vec![of_rows, of_columns], 2).reshape([rows * columns, m]);
    match first {
        0 => table,
        _ => Tensor::cat(vec![Tensor::zeros([first, m], device), table], 0),
    }
}
