//! From the characters of a word to a vector.
//!
//! A word outside the vocabulary still has characters, and frequent endings and capitals are
//! informative: convolutions with max pooling (Ma and Hovy 2016, arXiv:1603.01354), or a
//! bidirectional LSTM (Ling et al. 2015, arXiv:1508.02096).

use super::config::Characters;
use crate::checkpoint::Binder;
use crate::text::Texts;
use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};
use regard_attention::layers::{
    Convolution, ConvolutionConfig, Dropout, Embedding, EmbeddingConfig, Pool, Pooling,
    PoolingConfig, Recurrent, RecurrentConfig, Sequences,
};
use regard_attention::ops::{self, Activation, Cell};
use regard_attention::{Init, Mode};
use std::collections::HashMap;

/// Character encoder: convolutions with pooling, or a bidirectional LSTM.
#[derive(Module, Debug)]
pub(super) struct Speller {
    pub letters: Embedding,
    pub windows: Vec<Convolution>,
    pub pooling: Option<Pooling>,
    pub rnn: Option<Recurrent>,
    pub dropout: Dropout,
}

impl Speller {
    pub fn new(config: &Characters, alphabet: usize, dropout: f32, init: &mut Init) -> Speller {
        let inputs = config.embedding_size();
        let deviation = 1.0 / (inputs as f32).sqrt();
        let letters = EmbeddingConfig { deviation, ..EmbeddingConfig::new(alphabet, inputs) };
        let letters = letters.init(init);
        let windows = |widths: &[usize], outputs: usize, init: &mut Init| {
            let activation = Activation::Relu;
            let one =
                |width: &usize| ConvolutionConfig { inputs, outputs, width: *width, activation };
            widths.iter().map(|width| one(width).init(init)).collect::<Vec<_>>()
        };
        let width = config.width();
        let (windows, pooling, rnn) = match config {
            Characters::Cnn { widths, channels, .. } => {
                let pool = PoolingConfig { width, pool: Pool::Max };
                (windows(widths, *channels, init), Some(pool.init(init)), None)
            }
            Characters::Attention { widths, channels, attention_size, .. } => {
                let pool = Pool::Attention { hidden: *attention_size };
                let windows = windows(widths, *channels, init);
                (windows, Some(PoolingConfig { width, pool }.init(init)), None)
            }
            Characters::Lstm { hidden_size, .. } => {
                let rnn = RecurrentConfig {
                    bidirectional: true,
                    ..RecurrentConfig::new(Cell::Lstm, inputs, *hidden_size)
                };
                (vec![], None, Some(rnn.init(init)))
            }
        };
        Speller { letters, windows, pooling, rnn, dropout: Dropout::new(dropout, init) }
    }

    pub fn bind(&mut self, b: &mut Binder) {
        b.embedding("embed_letters", &mut self.letters);
        b.convolutions("windows", &mut self.windows);
        if let Some(pooling) = &mut self.pooling {
            b.pooling("pooling", pooling);
        }
        if let Some(rnn) = &mut self.rnn {
            b.recurrent("rnn", rnn);
        }
    }

    /// Computes a vector for each token, `[N, C]`.
    ///
    /// # Panics
    /// If the texts lack the characters of a token.
    pub fn read(&self, texts: &Texts, mode: Mode) -> Tensor<2> {
        let (device, spelling) = (self.letters.table.device(), Spelling::of(texts));
        let n = spelling.letters.len();
        let letters = TensorData::new(spelling.letters, [1, n]);
        let x = self.letters.forward(Tensor::<2, Int>::from_data(letters, &device));
        let [_, n, m] = x.dims();
        let x = self.dropout.forward(x.reshape([n, m]), mode);
        let words = Sequences::new(&spelling.lengths);
        let vectors = match (&self.rnn, &self.pooling) {
            (Some(rnn), _) => words.whole(x, |x, lengths| {
                let (_, last) = rnn.forward(x, None, Some(lengths), mode);
                let [ways, b, h] = last.h.dims();
                last.h.swap_dims(0, 1).reshape([b, ways * h])
            }),
            (None, pooling) => {
                let seen =
                    self.windows.iter().map(|window| window.forward(x.clone(), &words)).collect();
                let pooling = pooling.as_ref().expect("windows are pooled");
                pooling.forward(Tensor::cat(seen, 1), &words)
            }
        };
        let ([_, c], tokens) = (vectors.dims(), spelling.words.len());
        let of = TensorData::new(spelling.words, [1, tokens]);
        ops::embedding(vectors, Tensor::<2, Int>::from_data(of, &device), None).reshape([tokens, c])
    }
}

/// The distinct words of a batch, so that each is encoded once.
struct Spelling {
    /// Characters of all distinct words, concatenated.
    letters: Vec<i64>,
    lengths: Vec<usize>,
    /// Index of each token's word.
    words: Vec<i64>,
}

impl Spelling {
    fn of(texts: &Texts) -> Spelling {
        let mut known: HashMap<&[u32], i64> = HashMap::new();
        let mut spelling = Spelling { letters: vec![], lengths: vec![], words: vec![] };
        let tokens = texts.tokens();
        for word in texts.letters() {
            let next = known.len() as i64;
            let number = *known.entry(word).or_insert(next);
            if number == next {
                spelling.letters.extend(word.iter().map(|letter| i64::from(*letter)));
                spelling.lengths.push(word.len());
            }
            spelling.words.push(number);
        }
        let spelled = spelling.words.len();
        assert_eq!(spelled, tokens, "the model needs the characters of all {tokens} tokens");
        spelling
    }
}
