//! `config.json` of a model that hears.

use crate::labels::Labels;
use crate::sizes;
use crate::text::activation;
use regard_attention::layers::Reach;
use serde::{Deserialize, Serialize};

/// What a model says of what it hears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Head {
    /// One label for all of it.
    #[default]
    Labels,
    /// A letter, or none, for each row: connectionist temporal classification. Letter 0 is none.
    Ctc,
}

/// How rows know where others stand. Neither has a longest sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Places {
    /// A learned number for each head and distance.
    #[default]
    Relative,
    /// The further away, the less.
    Alibi,
}

/// `config.json`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Columns of a row that it hears.
    pub feature_size: usize,
    /// `M`
    pub hidden_size: usize,
    /// Layers of attention.
    pub num_hidden_layers: usize,
    /// `H`
    pub num_attention_heads: usize,
    /// Of the feed-forward parts.
    pub intermediate_size: usize,
    /// Of the feed-forward parts and the convolutions.
    pub hidden_act: String,
    /// Rows in a window of each convolution in front.
    pub conv_kernel: Vec<usize>,
    /// Of so many rows, each of them keeps one.
    pub conv_stride: Vec<usize>,
    /// Rows that a row sees before it, of those that the convolutions leave.
    pub left_context: usize,
    /// And after it, in each layer.
    pub right_context: usize,
    /// How rows know where others stand.
    pub position_embedding_type: Places,
    /// The share that is dropped of what each part adds.
    pub dropout: f32,
    /// The share of weights that is dropped.
    pub attention_dropout: f32,
    /// What it says.
    pub head: Head,
    /// The width in which rows are weighed for a label.
    pub pooling_size: usize,
    /// The labels, or the letters.
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
            position_embedding_type: Places::Relative,
            dropout: 0.1,
            attention_dropout: 0.0,
            head: Head::Labels,
            pooling_size: 64,
            labels: Labels::default(),
        }
    }
}

/// Nobody waits longer.
const FARTHEST: usize = 1 << 20;

impl Config {
    /// Turns down what cannot be.
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
                "conv_kernel and conv_stride: got {kernels} and {strides} numbers, need 1 to 16 \
                 of each"
            ));
        }
        for (kernel, stride) in self.conv_kernel.iter().zip(&self.conv_stride) {
            if !(1..=*kernel).contains(stride) || *kernel > 1024 {
                return Err(format!(
                    "conv_kernel and conv_stride: got {kernel} and {stride}, need windows of at \
                     most 1024 rows that leave none out"
                ));
            }
        }
        let reduction = self.conv_stride.iter().fold(1, |n: usize, s| n.saturating_mul(*s));
        if reduction > FARTHEST {
            return Err(format!(
                "conv_stride: got strides that make one of {reduction} rows, need at most \
                 {FARTHEST}"
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
        if self.head == Head::Ctc && labels < 2 {
            return Err(format!("id2label: got {labels}, need none and at least one letter"));
        }
        activation("hidden_act", &self.hidden_act).map(|_| ())
    }

    /// How far a row sees.
    pub fn reach(&self) -> Reach {
        Reach { left: self.left_context, right: self.right_context }
    }

    pub(super) fn farthest(&self) -> usize {
        self.left_context.max(self.right_context)
    }

    /// So many rows that it hears are one that it says something of.
    pub fn reduction(&self) -> usize {
        self.conv_stride.iter().product()
    }

    /// Rows that it hears after one before it has said all of that one.
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
