//! A random problem, run by the fast path and by the reference.

use regard_kernels::attention::formula::{Expr, number};
use regard_kernels::attention::reference::{self, tape::Var};
use regard_kernels::attention::{
    Attention, AttentionInputs, Dims, Graph, Grid, InputGradients, ParamGradients, Positions, Row,
    SavedAttention, Setting, Settings, Upstream, Values, bias, mask::*, normalize, score,
};
use regard_kernels::rng::Stream;
use regard_kernels::view::{View, ViewMut};
use std::sync::Arc;

/// Sizes `[B, H, Hk, T, S, D, E]`.
pub type Shape = [usize; 7];

/// A score and its name.
pub type ScoreRow = (String, Arc<dyn score::Score>);

/// `c·tanh(x/c)`, with its derivative: a score of the caller's own.
#[derive(Debug)]
struct SoftCap(f32);
impl score::ScoreMod for SoftCap {
    fn apply(&self, s: f32, _: score::ScoreCell) -> f32 {
        self.0 * (s / self.0).tanh()
    }
    fn derivative(&self, s: f32, _: score::ScoreCell) -> f32 {
        1.0 - (s / self.0).tanh().powi(2)
    }
    fn formula(&self, score: Expr) -> Option<Expr> {
        let cap = number(f64::from(self.0));
        Some(cap.clone() * (score / cap).tanh())
    }
}

/// Every score of the catalogue, with each of its optional settings and without, and one of the
/// caller's own.
pub fn scores([b, _, _, t, s, _, _]: Shape) -> Vec<ScoreRow> {
    let mut all: Vec<ScoreRow> = vec![];
    for row in score::ROWS {
        for settings in trials(row, [b, t, s]) {
            let made = row.make(&settings).unwrap_or_else(|e| panic!("{}: {e}", row.name()));
            let with = [settings.segments.is_some(), settings.graph.is_some()];
            let name = match with {
                [true, _] => format!("{}, segments", row.name()),
                [_, true] => format!("{}, features", row.name()),
                _ => row.name().to_string(),
            };
            all.push((name, made));
        }
    }
    all.push(("score_mod".into(), Arc::new(score::Modified(Arc::new(SoftCap(2.0))))));
    all
}

/// Every bias of the catalogue.
pub fn all_biases([b, _, _, t, s, _, _]: Shape) -> Vec<Arc<dyn bias::Bias>> {
    let made = |row: &'static Row<dyn bias::Bias>| {
        let settings = trials(row, [b, t, s]).into_iter().filter(|given| {
            given.graph.is_some() || !row.about.settings.contains(&Setting::Graph(None))
        });
        settings.map(|settings| row.make(&settings).unwrap()).collect::<Vec<_>>()
    };
    bias::ROWS.iter().flat_map(made).collect()
}

/// The settings that a row is tested with: its numbers, and without and with all others.
fn trials<T: ?Sized + 'static>(row: &Row<T>, [b, t, s]: [usize; 3]) -> Vec<Settings> {
    let (indptr, indices) = graph(t, s);
    let mut all = vec![];
    for numbers in row.trials {
        let numbers = numbers.iter().map(|(name, x)| (name.to_string(), *x)).collect();
        let plain = Settings { numbers, noise: Some(Stream::new(3, 1, 4)), ..Settings::default() };
        all.push(plain.clone());
        for setting in row.about.settings {
            match setting {
                Setting::Segments => {
                    let ids = (0..(b * s) as i64).map(|i| i / 3 % 2).collect();
                    all.push(Settings { segments: Some(ids), ..plain.clone() });
                }
                // The masks' graph: under the others there are pairs with and without an edge.
                Setting::Graph(_) => {
                    let graph = Some(Arc::new(Graph::new(&indptr, &indices)));
                    all.push(Settings { graph, ..plain.clone() });
                }
                Setting::Number(..) | Setting::Size(_) | Setting::Seed => {}
            }
        }
    }
    all
}

pub fn masks([b, h, _, t, s, ..]: Shape) -> Vec<(&'static str, Mask)> {
    let stream = Stream::new(5, s as u64, t as u64);
    let below = |at: usize, n: usize| (stream.bits(at as u64) as usize % n) as i64;
    let coin = |at: usize| stream.uniform(at as u64) < 0.6;
    let centres: Vec<f32> = (0..b * t).map(|c| stream.uniform(c as u64) * s as f32).collect();
    let (indptr, indices) = graph(t, s);
    let mut order: Vec<i64> = (0..s as i64).collect();
    order.sort_by_key(|x| stream.bits(*x as u64));
    let orders: Vec<Vec<i64>> = (0..b)
        .map(|row| {
            let mut order: Vec<i64> = (0..s as i64).collect();
            order.sort_by_key(|x| stream.bits((99 * (row + 1)) as u64 + *x as u64));
            order
        })
        .collect();
    // Those of the first rank are a third of all.
    let rank = |at: &i64| (*at as u32).saturating_sub(s as u32 / 3);
    let ranks: Vec<Vec<u32>> = orders.iter().map(|row| row.iter().map(rank).collect()).collect();
    let lens: Vec<i64> = (0..b).map(|r| below(r, s + 1)).collect();
    let per_query: Vec<i64> = (0..b * t).map(|r| below(r, s + 1)).collect();
    let ids: Vec<i64> = (0..s as i64).map(|x| x / 4).collect();
    vec![
        ("full", full()),
        ("causal", causal()),
        ("lengths", lengths(&lens)),
        ("lengths per query", lengths_per_query(&per_query)),
        ("window", window(2, 1)),
        ("expanded", expanded(3, 2, 2)),
        ("around", around(&centres, 2)),
        ("global_tokens", global_tokens(&[0]) | window(1, 1)),
        ("prefix", prefix(s / 3)),
        ("segments", segments(&ids)),
        ("segments in pieces", segments(&(0..s as i64).map(|x| x % 3).collect::<Vec<_>>())),
        ("permutation", permutation(&order, true)),
        ("permutation, content", permutation(&order, false)),
        ("permutations", permutations(&orders, true)),
        ("ranked", ranked(&ranks, false)),
        ("edges", edges(&indptr, &indices)),
        ("dense", dense((0..t * s).map(coin).collect::<Vec<_>>())),
        ("dense per row", dense_per_row((0..b * t * s).map(coin).collect::<Vec<_>>())),
        ("dense per head", dense_per_head((0..b * h * t * s).map(coin).collect::<Vec<_>>())),
        ("not causal", !causal()),
        ("causal & lengths & window", causal() & lengths(&lens) & window(4, 0)),
        ("edges & causal", edges(&indptr, &indices) & causal()),
        ("nothing", lengths(&vec![0; b])),
    ]
}

/// A random graph in CSR form; some queries have no edges.
pub fn graph(t: usize, s: usize) -> (Vec<i64>, Vec<i64>) {
    let stream = Stream::new(9, 9, 9);
    let (mut indptr, mut indices) = (vec![0], vec![]);
    for i in 0..t {
        let row =
            (0..s).filter(|j| stream.bits((i * s + j) as u64).is_multiple_of(3) && i % 5 != 4);
        indices.extend(row.map(|j| j as i64));
        indptr.push(indices.len() as i64);
    }
    (indptr, indices)
}

pub type NormalizerRow = (&'static str, Arc<dyn normalize::Normalizer>);

/// Every normaliser of the catalogue.
pub fn normalizers() -> Vec<NormalizerRow> {
    let made = |row: &'static Row<dyn normalize::Normalizer>| {
        trials(row, [1, 1, 1]).into_iter().map(|given| (row.name(), row.make(&given).unwrap()))
    };
    normalize::ROWS.iter().flat_map(made).collect()
}

/// A problem with its data.
#[derive(Debug)]
pub struct Problem {
    pub name: String,
    pub fast: Attention,
    pub dims: Dims,
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub params: Vec<(Vec<f32>, [usize; 4])>,
    pub dout: Vec<f32>,
    pub dweights: Option<Vec<f32>>,
    pub dlog_prob: Vec<f32>,
}

pub fn random(seed: u64, n: usize) -> Vec<f32> {
    let stream = Stream::new(seed, 77, 0);
    (0..n as u64).map(|i| stream.normal(i)).collect()
}

impl Problem {
    pub fn new(shape: Shape, score: ScoreRow, mask: (&str, Mask), norm: NormalizerRow) -> Problem {
        let [b, h, hk, t, s, d, e] = shape;
        // Keys and values of another width than queries, where the score takes them.
        let fits = |dk: usize, e: usize| {
            let dims = Dims { b, h, hk, t, s, d, dk, e };
            score.1.check(&Grid::new(dims, Positions::End).unwrap()).is_ok().then_some(dims)
        };
        let widths = [(d + 3, e), (d, e), (d, d)];
        let plain = Dims { b, h, hk, t, s, d, dk: d, e };
        let dims = widths.into_iter().find_map(|(dk, e)| fits(dk, e)).unwrap_or(plain);
        let (dk, e) = (dims.dk, dims.e);
        let name = format!("{} × {} × {} at {shape:?}", score.0, mask.0, norm.0);
        let mut fast = Attention::dot().mask(mask.1);
        fast.score = score.1;
        fast.normalizer = norm.1;
        let mut problem = Problem {
            name,
            fast,
            dims,
            q: random(1, b * h * t * d),
            k: random(2, b * hk * s * dk),
            v: random(3, b * hk * s * e),
            params: vec![],
            dout: random(4, b * h * t * e),
            dweights: None,
            dlog_prob: random(5, b * h * t),
        };
        problem.draw_params();
        problem
    }

    pub fn draw_params(&mut self) {
        let dims = self.dims;
        let draw = |(at, p): (usize, regard_kernels::attention::Param)| {
            let n = p.shape.iter().product();
            // Widths must be positive, and wide enough that no distance is near a kernel's edge.
            let data = match p.values {
                Values::Width => vec![(1.7 * dims.d as f32).sqrt() * 1.3],
                // Near the queries, as a model that looks at something would put them.
                Values::Centres => {
                    let position = |at: usize| (at % dims.t + dims.s) as f32 - dims.t as f32;
                    random(9, n).iter().enumerate().map(|(at, x)| position(at) + x).collect()
                }
                Values::Any if n == 1 && p.axes == "1111" => vec![0.7 - at as f32 * 1.1],
                Values::Any => random(10 + at as u64, n).iter().map(|x| x * 0.7).collect(),
            };
            (data, p.shape)
        };
        self.params = self.fast.params(&dims).into_iter().enumerate().map(draw).collect();
    }

    pub fn inputs(&self) -> AttentionInputs<'_> {
        let Dims { b, h, hk, t, s, d, dk, e } = self.dims;
        AttentionInputs {
            q: View::new(&self.q, [b, h, t, d]).unwrap(),
            k: View::new(&self.k, [b, hk, s, dk]).unwrap(),
            v: View::new(&self.v, [b, hk, s, e]).unwrap(),
            params: self.params.iter().map(|(p, shape)| View::new(p, *shape).unwrap()).collect(),
        }
    }

    pub fn forward(&self) -> (Vec<f32>, SavedAttention) {
        let Dims { b, h, t, e, .. } = self.dims;
        let mut out = vec![f32::NAN; b * h * t * e];
        let view = ViewMut::new(&mut out, [b, h, t, e]).unwrap();
        let saved = self.fast.forward(&self.inputs(), &view);
        let saved = saved.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        (out, saved)
    }

    pub fn weights(&self, saved: &SavedAttention) -> Vec<f32> {
        let Dims { b, h, t, s, .. } = self.dims;
        let mut weights = vec![f32::NAN; b * h * t * s];
        let view = ViewMut::new(&mut weights, [b, h, t, s]).unwrap();
        self.fast.weights(&self.inputs(), saved, Default::default(), &view).unwrap();
        weights
    }

    /// Gradients of q, k, v and the parameters, in this order.
    pub fn backward(&self, out: &[f32], saved: &SavedAttention) -> (Vec<Vec<f32>>, ParamGradients) {
        let Dims { b, h, hk, t, s, d, dk, e } = self.dims;
        let mut grads =
            [self.q.len(), self.k.len(), self.v.len()].map(|n| vec![f32::NAN; n]).to_vec();
        let weights = self.dweights.as_ref().map(|_| self.weights(saved));
        let upstream = Upstream {
            out: Some((
                View::new(out, [b, h, t, e]).unwrap(),
                View::new(&self.dout, [b, h, t, e]).unwrap(),
            )),
            weights: self.dweights.as_ref().map(|dw| {
                let w = View::new(weights.as_ref().unwrap(), [b, h, t, s]).unwrap();
                (w, View::new(dw, [b, h, t, s]).unwrap())
            }),
            log_prob: Some(&self.dlog_prob),
        };
        let [dq, dkey, dv] = &mut grads[..] else { unreachable!() };
        let to = InputGradients {
            dq: ViewMut::new(dq, [b, h, t, d]).unwrap(),
            dk: ViewMut::new(dkey, [b, hk, s, dk]).unwrap(),
            dv: ViewMut::new(dv, [b, hk, s, e]).unwrap(),
        };
        let given = self.fast.backward(&self.inputs(), saved, &upstream, &to);
        let given = given.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        grads.extend(given.params.iter().cloned());
        (grads, given)
    }

    pub fn grid(&self) -> Grid {
        Grid::new(self.dims, self.fast.positions.clone()).unwrap()
    }

    /// The reference's output, weights, and gradients in the order of [`Self::backward`].
    pub fn reference(&self) -> (Vec<f64>, Vec<f64>, Vec<Vec<f64>>) {
        let grid = self.grid();
        Var::start();
        let leaves =
            |x: &[f32]| -> Vec<Var> { x.iter().map(|x| Var::leaf(f64::from(*x))).collect() };
        let (q, k, v) = (leaves(&self.q), leaves(&self.k), leaves(&self.v));
        let params: Vec<Vec<Var>> = self.params.iter().map(|(p, _)| leaves(p)).collect();
        let result = reference::run(&self.fast, &grid, [&q, &k, &v], &params);
        let result = result.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        use reference::tape::Number;
        let weighted = |x: &[Var], by: &[f32]| {
            let terms = x.iter().zip(by).map(|(x, by)| *x * Var::of(f64::from(*by)));
            terms.fold(Var::of(0.0), |x, y| x + y)
        };
        let mut loss = weighted(&result.out, &self.dout);
        if let Some(dw) = &self.dweights {
            loss = loss + weighted(&result.weights, dw);
        }
        // Only a sample learns through its log-probability.
        if self.fast.normalizer.delta() == normalize::Delta::LogProb {
            loss = loss + weighted(&result.log_prob, &self.dlog_prob);
        }
        let grads = loss.gradients();
        let of = |x: &[Var]| -> Vec<f64> { x.iter().map(|x| grads.of(*x)).collect() };
        let mut all = vec![of(&q), of(&k), of(&v)];
        all.extend(params.iter().map(|p| of(p)));
        let values = |x: &[Var]| -> Vec<f64> { x.iter().map(|x| x.value()).collect() };
        (values(&result.out), values(&result.weights), all)
    }

    /// Forward, weights and backward against the reference.
    pub fn check(&self, tolerance: f64) {
        let (out, saved) = self.forward();
        let (want, want_weights, want_grads) = self.reference();
        close(&self.name, "out", &out, &want, tolerance);
        close(&self.name, "weights", &self.weights(&saved), &want_weights, tolerance);
        let (grads, _) = self.backward(&out, &saved);
        let names = self.fast.params(&self.dims).into_iter().map(|p| p.name);
        let names: Vec<_> = ["dq", "dk", "dv"].into_iter().chain(names).collect();
        assert_eq!(grads.len(), want_grads.len(), "{}: number of gradients", self.name);
        for ((name, got), want) in names.iter().zip(&grads).zip(&want_grads) {
            // These gradients of a bias are sums of distances, up to S each, that nearly cancel.
            let distances = ["slopes", "sigma"].contains(name) && !self.fast.biases.is_empty();
            let tolerance = if distances { tolerance * self.dims.s as f64 } else { tolerance };
            close(&self.name, name, got, want, tolerance);
        }
    }
}

/// Largest difference, relative to the largest number around.
pub fn close(problem: &str, what: &str, got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{problem}: length of {what}");
    let scale = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let off = (f64::from(*got) - want).abs() / scale;
        assert!(
            off <= tolerance,
            "{problem}: {what}[{at}] is {got}, should be {want} (off {off:e})"
        );
    }
}

pub fn with_positions(mut problem: Problem, positions: Positions) -> Problem {
    problem.fast.positions = positions;
    problem
}

pub fn with_bias(mut problem: Problem, bias: Arc<dyn bias::Bias>) -> Problem {
    problem.name = format!("{} + {bias:?}", problem.name);
    problem.fast.biases.push(bias);
    problem.draw_params();
    problem
}
