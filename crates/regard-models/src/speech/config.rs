//! `config.json` of the speech model.

use crate::labels::Labels;
use crate::sizes;
use crate::text::activation;
use regard_attention::layers::Reach;
use serde::{Deserialize, Serialize};

/// Output of the speech model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpeechHead {
    /// One label for a whole sound.
    #[default]
    Labels,
    /// A character or the blank for each frame: connectionist temporal classification. Label 0 is
    /// the blank.
    Ctc,
}

/// Position encoding. Neither limits the length of a sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpeechPositions {
    /// A learned bias for each head and distance.
    #[default]
    Relative,
    /// ALiBi: a penalty that is linear in the distance.
    Alibi,
}

/// Configuration of [`Speech`](super::Speech), as in `config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Features of an input frame; default 80.
    pub feature_size: usize,
    /// Width `M` of the hidden states; default 144.
    pub hidden_size: usize,
    /// Number of attention layers; default 4.
    pub num_hidden_layers: usize,
    /// Number of heads `H`; default 4.
    pub num_attention_heads: usize,
    /// Hidden width of the feed-forward layers; default 576.
    pub intermediate_size: usize,
    /// Activation of the feed-forward layers and the convolutions; default `gelu`.
    pub hidden_act: String,
    /// Kernel size of each convolution, in frames; default `[3, 3]`.
    pub conv_kernel: Vec<usize>,
    /// Stride of each convolution, in frames; default `[2, 2]`.
    pub conv_stride: Vec<usize>,
    /// Frames before it that a frame attends to, after the convolutions; default 32.
    pub left_context: usize,
    /// Frames after it that a frame attends to, in each layer; default 8.
    pub right_context: usize,
    /// Position encoding; default relative.
    pub position_embedding_type: SpeechPositions,
    /// Dropout of each sublayer's output; default 0.1.
    pub dropout: f32,
    /// Dropout of attention weights; default 0.
    pub attention_dropout: f32,
    /// Output of the model.
    pub head: SpeechHead,
    /// Hidden width of the attention pooling for a label; default 64.
    pub pooling_size: usize,
    /// Labels, or the characters with the blank as label 0.
    #[serde(flatten)]
    pub labels: Labels,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            feature_size: 80,
            hidden_size: 144,
            num_hidden_layers: 4,
            num_attention_heads: 4,
            intermediate_size: 576,
            hidden_act: "gelu".into(),
            conv_kernel: vec![3, 3],
            conv_stride: vec![2, 2],
            left_context: 32,
            right_context: 8,
            position_embedding_type: SpeechPositions::Relative,
            dropout: 0.1,
            attention_dropout: 0.0,
            head: SpeechHead::Labels,
            pooling_size: 64,
            labels: Labels::default(),
        }
    }
}

/// Largest context and largest reduction, in frames.
const FARTHEST: usize = 1 << 20;

impl Config {
    /// Checks sizes before any tensor is allocated.
    pub(super) fn check(&self) -> Result<(), String> {
        sizes::check(&[
            ("feature_size", self.feature_size),
            ("hidden_size", self.hidden_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("pooling_size", self.pooling_size),
        ])?;
        let (width, heads) = (self.hidden_size, self.num_attention_heads);
        if !width.is_multiple_of(heads) {
            return Err(format!(
                "num_attention_heads: got {heads}, need a divisor of hidden_size = {width}"
            ));
        }
        let (kernels, strides) = (self.conv_kernel.len(), self.conv_stride.len());
        if kernels == 0 || kernels != strides || kernels > 16 {
            return Err(format!(
                "conv_kernel and conv_stride: got {kernels} and {strides} values, need 1 to 16 \
                 of each"
            ));
        }
        for (kernel, stride) in self.conv_kernel.iter().zip(&self.conv_stride) {
            if !(1..=*kernel).contains(stride) || *kernel > 1024 {
                return Err(format!(
                    "conv_kernel and conv_stride: got {kernel} and {stride}, need a kernel of at \
                     most 1024 and a stride of at most the kernel"
                ));
            }
        }
        let reduction = self.conv_stride.iter().fold(1, |n: usize, s| n.saturating_mul(*s));
        if reduction > FARTHEST {
            return Err(format!(
                "conv_stride: got strides whose product is {reduction}, need at most {FARTHEST}"
            ));
        }
        for (name, reach) in
            [("left_context", self.left_context), ("right_context", self.right_context)]
        {
            if reach > FARTHEST {
                return Err(format!("{name}: got {reach}, need at most {FARTHEST}"));
            }
        }
        let (wide, distances) = (self.intermediate_size, 2 * self.farthest() + 1);
        let labels = self.labels.count()?;
        let kernels = self.conv_kernel.iter().enumerate();
        let convolution = |(i, kernel): (usize, &usize)| {
            let inputs = if i == 0 { self.feature_size } else { width };
            [("conv_kernel · inputs", kernel.saturating_mul(inputs)), ("hidden_size", width)]
        };
        sizes::check_matrices(&kernels.map(convolution).collect::<Vec<_>>())?;
        sizes::check_matrices(&[
            [("hidden_size", width), ("intermediate_size", wide)],
            [("hidden_size", width), ("hidden_size", 3 * width)],
            [("num_attention_heads", heads), ("left_context", distances)],
            [("hidden_size", width), ("pooling_size", self.pooling_size)],
            [("hidden_size", width), ("num_labels", labels)],
        ])?;
        sizes::check_shares(&[
            ("dropout", self.dropout),
            ("attention_dropout", self.attention_dropout),
        ])?;
        if self.head == SpeechHead::Ctc && labels < 2 {
            return Err(format!("id2label: got {labels}, need a blank and at least one character"));
        }
        activation("hidden_act", &self.hidden_act).map(|_| ())
    }

    /// Frames that a frame attends to in each layer.
    pub fn reach(&self) -> Reach {
        Reach { left: self.left_context, right: self.right_context }
    }

    pub(super) fn farthest(&self) -> usize {
        self.left_context.max(self.right_context)
    }

    /// Input frames per output frame: the product of all strides.
    pub fn reduction(&self) -> usize {
        self.conv_stride.iter().product()
    }

    /// Look-ahead in input frames: the number of later frames that an output depends on.
    pub fn latency(&self) -> usize {
        let mut apart = 1;
        let mut rows = 0;
        for (kernel, stride) in self.conv_kernel.iter().zip(&self.conv_stride) {
            rows += apart * (kernel / 2);
            apart *= stride;
        }
        rows + apart * self.num_hidden_layers * self.right_context
    }
}
