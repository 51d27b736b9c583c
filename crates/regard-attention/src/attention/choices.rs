//! Constructors of scores, biases, masks and normalisers.

use super::Attention;
use burn::tensor::Tensor;
use regard_kernels::attention::{self as spec, Graph, Positions, bias, mask, normalize, score};
use regard_kernels::rng::Stream;
use std::sync::Arc;

/// `[H, D]` as a parameter of the kernels, `[1, H, 1, D]`.
fn per_head(x: Tensor<2>) -> Tensor<4> {
    let [h, d] = x.dims();
    x.reshape([1, h, 1, d])
}

fn scalar(x: Tensor<1>) -> Tensor<4> {
    x.reshape([1, 1, 1, 1])
}

impl Attention {
    /// Creates scaled dot-product attention: score `q·k/√D`, softmax, no mask and no bias.
    pub fn dot() -> Attention {
        Attention::with_score(score::Dot, vec![])
    }

    /// Creates attention with Bahdanau's additive score `Σ v_d tanh(q_d + k_d)`, of projected
    /// queries and keys.
    ///
    /// # Shapes
    /// `v: [H, D]`
    pub fn additive(v: Tensor<2>) -> Attention {
        Attention::with_score(score::Additive, vec![per_head(v)])
    }

    /// Creates attention with GATv2's score `Σ v_d LeakyReLU(q_d + k_d)`, with negative slope
    /// `slope`.
    ///
    /// # Shapes
    /// `v: [H, D]`
    pub fn gatv2(v: Tensor<2>, slope: f32) -> Attention {
        Attention::with_score(score::Gatv2 { slope, graph: None }, vec![per_head(v)])
    }

    /// Creates attention with GAT's score `LeakyReLU(a_q·q + a_k·k)`, with negative slope `slope`.
    ///
    /// # Shapes
    /// `a_q, a_k: [H, D]`
    pub fn edge(a_q: Tensor<2>, a_k: Tensor<2>, slope: f32) -> Attention {
        let score = score::Edge { slope, graph: None };
        Attention::with_score(score, vec![per_head(a_q), per_head(a_k)])
    }

    /// Adds projected edge features inside the nonlinearity: `LeakyReLU(a_q·q + a_k·k + e)` for
    /// GAT, `Σ v_d LeakyReLU(q_d + k_d + e_d)` for GATv2. The graph is usually the mask's; pairs
    /// that are not edges of it add nothing.
    ///
    /// # Shapes
    /// `features: [H, edges, 1]` after [`Attention::edge`], `[H, edges, D]` after
    /// [`Attention::gatv2`]
    pub fn edge_features(self, graph: Graph, features: Tensor<3>) -> Attention {
        let more = score::More::Graph(Arc::new(graph));
        let when = "edge_features: only after `edge` or `gatv2`, once and before any bias";
        assert!(self.spec.biases.is_empty(), "{when}");
        let mut with = self.extended(more, when);
        with.params.push(features.unsqueeze());
        with
    }

    /// Extends the score with further terms, or panics with `when` if it does not support them.
    #[track_caller]
    fn extended(self, more: score::More, when: &str) -> Attention {
        let Some(score) = self.spec.score.extended(more) else { panic!("{when}") };
        self.map(|spec| spec::Attention { score, ..spec })
    }

    /// Creates attention with Luong's general (bilinear) score `qᵀ W k`.
    ///
    /// # Shapes
    /// `w: [H, Dq, Dk]`
    pub fn general(w: Tensor<3>) -> Attention {
        Attention::with_score(score::General, vec![w.unsqueeze()])
    }

    /// Creates attention with a kernel of the distance `|q − k|/σ` (Nadaraya–Watson).
    ///
    /// # Shapes
    /// `sigma: [1]`
    pub fn kernel(shape: score::KernelFunction, sigma: Tensor<1>) -> Attention {
        Attention::with_score(score::KernelScore(shape), vec![scalar(sigma)])
    }

    /// Creates attention with the key–value score `(a·(q·k) + b·(q·v))/√D`.
    ///
    /// # Shapes
    /// `a, b: [1]`
    pub fn key_value(a: Tensor<1>, b: Tensor<1>) -> Attention {
        Attention::with_score(score::KeyValue, vec![scalar(a), scalar(b)])
    }

    /// Creates dot-product attention whose scores are limited softly, `cap · tanh(q·k/√D / cap)`.
    pub fn soft_cap(cap: f32) -> Attention {
        Attention::with_score(score::SoftCap { cap }, vec![])
    }

    /// Creates attention with Transformer-XL's relative position score
    /// `((q + u)·k_j + (q + w)·r_{p−j})/√D`, with the query at position `p`.
    ///
    /// # Shapes
    /// `r: [H, S + T, D]` with row `S − (p − j)` for the distance `p − j`; `u, w: [H, D]`
    pub fn relative(r: Tensor<3>, u: Tensor<2>, w: Tensor<2>) -> Attention {
        let params = vec![r.unsqueeze(), per_head(u), per_head(w)];
        Attention::with_score(score::Relative::default(), params)
    }

    /// Adds XLNet's segment term to [`Attention::relative`]: whether query and key are in the same
    /// segment.
    ///
    /// # Shapes
    /// as [`Attention::relative`]; `ids: [B·S]`, `segment: [H, 2, D]` (same, different),
    /// `x: [H, D]`
    pub fn segment(self, ids: Vec<i64>, segment: Tensor<3>, x: Tensor<2>) -> Attention {
        let when = "segment: only after `relative`, once and before any bias";
        assert!(self.spec.biases.is_empty(), "{when}");
        let mut with = self.extended(score::More::Segments(ids), when);
        with.params.extend([segment.unsqueeze(), per_head(x)]);
        with
    }

    /// Sets the position of each query, for scores of relative positions: query `i` of batch row
    /// `b` is at position `places[b·T + i]`, one of the last `n` keys. Use it to compute queries
    /// only at the predicted positions.
    ///
    /// # Shapes
    /// as [`Attention::relative`], but `r: [H, S + n, D]`
    pub fn among_last(self, n: usize, places: &[usize]) -> Attention {
        let centres = places.iter().map(|place| *place as f32).collect();
        let with = self.extended(score::More::Last(n), "among_last: only after `relative`");
        with.positions(Positions::Centres(centres))
    }

    /// Creates attention with a custom score `f(q·k/√D, position)` and its derivative, which
    /// [`score::check_derivative`] compares with finite differences.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use regard_attention::score::{ScoreCell, ScoreMod, check_derivative};
    /// use regard_attention::{Attention, mask::causal};
    /// use std::sync::Arc;
    ///
    /// /// Scores damped by distance: `s / (1 + |p − j|)`.
    /// #[derive(Debug)]
    /// struct Flatter;
    ///
    /// impl ScoreMod for Flatter {
    ///     fn apply(&self, score: f32, cell: ScoreCell) -> f32 {
    ///         score * self.derivative(score, cell)
    ///     }
    ///     fn derivative(&self, _: f32, cell: ScoreCell) -> f32 {
    ///         1.0 / (1.0 + (cell.position - cell.key as f32).abs())
    ///     }
    /// }
    ///
    /// check_derivative(&Flatter).unwrap();
    ///
    /// let x = Tensor::<4>::ones([1, 2, 5, 8], &Device::flex().autodiff()).require_grad();
    /// let attention = Attention::modified(Arc::new(Flatter)).mask(causal());
    /// let gradients = attention.attend(x.clone(), x.clone(), x.clone()).sum().backward();
    /// assert_eq!(x.grad(&gradients).unwrap().dims(), [1, 2, 5, 8]);
    /// ```
    pub fn modified(f: Arc<dyn score::ScoreMod>) -> Attention {
        Attention::with_score(score::Modified(f), vec![])
    }

    /// Creates attention with any score, and its parameters as tensors of four axes: missing
    /// leading axes have size 1, such as `[1, H, 1, D]` for one vector per head.
    pub fn with_score(score: impl score::Score + 'static, params: Vec<Tensor<4>>) -> Attention {
        Attention::of(Arc::new(score), params)
    }

    /// Creates attention with a score chosen at run time, and its parameters as in
    /// [`Attention::with_score`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use regard_attention::{Attention, Settings, find, score};
    ///
    /// let device = Device::flex();
    /// let row = find(score::ROWS, "additive").unwrap();
    /// let score = row.make(&Settings::default()).unwrap();
    /// let attention = Attention::of(score, vec![Tensor::ones([1, 2, 1, 8], &device)]);
    /// let x = Tensor::<4>::ones([1, 2, 5, 8], &device);
    /// assert_eq!(attention.attend(x.clone(), x.clone(), x).dims(), [1, 2, 5, 8]);
    /// ```
    pub fn of(score: Arc<dyn score::Score>, params: Vec<Tensor<4>>) -> Attention {
        let spec = spec::Attention { score, ..spec::Attention::dot() };
        Attention { spec: Arc::new(spec), params }
    }

    fn map(self, f: impl FnOnce(spec::Attention) -> spec::Attention) -> Attention {
        let spec = Arc::try_unwrap(self.spec).unwrap_or_else(|shared| (*shared).clone());
        Attention { spec: Arc::new(f(spec)), ..self }
    }

    /// Sets the mask.
    pub fn mask(self, mask: mask::Mask) -> Attention {
        self.map(|spec| spec.mask(mask))
    }

    /// Sets the normaliser.
    pub fn normalize(self, normalizer: impl normalize::Normalizer + 'static) -> Attention {
        self.with_normalizer(Arc::new(normalizer))
    }

    /// Sets a normaliser chosen at run time, as [`Row::make`](super::Row::make) returns it.
    pub fn with_normalizer(self, normalizer: Arc<dyn normalize::Normalizer>) -> Attention {
        self.map(|spec| spec::Attention { normalizer, ..spec })
    }

    /// Sets the scale of the scores, in place of the score's default.
    pub fn scale(self, scale: f32) -> Attention {
        self.map(|spec| spec.scale(scale))
    }

    /// Sets the positions of the queries among the keys.
    pub fn positions(self, positions: Positions) -> Attention {
        self.map(|spec| spec.positions(positions))
    }

    /// Drops a fraction `p` of the weights; the backward drops the same ones.
    pub fn dropout(self, p: f32, noise: Stream) -> Attention {
        self.map(|spec| spec.dropout(p, noise))
    }

    /// Adds a bias, with its parameters as in [`Attention::with_score`].
    pub fn bias(self, bias: impl bias::Bias + 'static, params: Vec<Tensor<4>>) -> Attention {
        self.with_bias(Arc::new(bias), params)
    }

    /// Adds a bias chosen at run time, as [`Row::make`](super::Row::make) returns it.
    pub fn with_bias(mut self, bias: Arc<dyn bias::Bias>, params: Vec<Tensor<4>>) -> Attention {
        self.params.extend(params);
        self.map(|mut spec| {
            spec.biases.push(bias);
            spec
        })
    }

    /// Adds the ALiBi bias `−slope_h·|p − j|`, with the query at position `p`.
    ///
    /// # Shapes
    /// `slopes: [H]`
    pub fn alibi(self, slopes: Tensor<1>) -> Attention {
        let [h] = slopes.dims();
        self.bias(bias::Alibi, vec![slopes.reshape([1, h, 1, 1])])
    }

    /// Adds a learned relative position bias; distances are clipped to `±reach`.
    ///
    /// # Shapes
    /// `table: [H, 2·reach + 1]`
    pub fn table(self, table: Tensor<2>) -> Attention {
        let [h, n] = table.dims();
        assert!(n % 2 == 1, "table: got {n} distances, need 2·reach + 1");
        self.bias(bias::Table { reach: n / 2 }, vec![table.reshape([1, h, 1, n])])
    }

    /// Adds a bias for each query–key pair.
    ///
    /// # Shapes
    /// `bias: [B or 1, H or 1, T, S]`; a leading 1 is broadcast
    pub fn dense_bias(self, bias: Tensor<4>) -> Attention {
        let [b, h, ..] = bias.dims();
        self.bias(bias::Dense { per_batch: b > 1, per_head: h > 1 }, vec![bias])
    }

    /// Adds a Gaussian around each query's centre to the scores; with `after`, multiplies the
    /// weights by it after normalisation.
    ///
    /// # Shapes
    /// `centres: [B, T]`, `sigma: [1]`
    pub fn gaussian_bias(self, centres: Tensor<2>, sigma: Tensor<1>, after: bool) -> Attention {
        self.bias(bias::Gaussian { after }, vec![centres.unsqueeze(), scalar(sigma)])
    }
}
