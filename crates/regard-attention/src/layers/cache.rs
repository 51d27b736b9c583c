//! Keys and values that decoding has seen, so that each step only adds its own.

use burn::tensor::{Device, Tensor};

/// Grows by at least this many positions at a time.
const STEP: usize = 64;

/// The keys and values of one layer.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// `[B, Hk, room, D]` each; the first `len` positions are in use.
    both: Option<[Tensor<4>; 2]>,
    len: usize,
}

impl Cache {
    /// Nothing seen yet.
    pub fn new() -> Cache {
        Cache::default()
    }

    /// Positions that were seen.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends new keys and values and gives all of them.
    ///
    /// # Shapes
    /// `k, v: [B, Hk, new, D]` → `[B, Hk, len, D]` each
    pub fn append(&mut self, k: Tensor<4>, v: Tensor<4>) -> [Tensor<4>; 2] {
        let [b, h, new, _] = k.dims();
        let (from, to) = (self.len, self.len + new);
        let room = self.both.as_ref().map_or(0, |[k, _]| k.dims()[2]);
        let device: Device = k.device();
        let mut index = 0;
        let both = [k, v].map(|new| {
            let d = new.dims()[3];
            let old = self.both.as_mut().map(|both| {
                std::mem::replace(&mut both[index], Tensor::empty([0, 0, 0, 0], &device))
            });
            index += 1;
            let old = match old {
                Some(old) if room >= to => old,
                old => {
                    // Half as much again, so that a long text is copied a few times only.
                    let wide = (to + to / 2).next_multiple_of(STEP);
                    let fresh = Tensor::zeros([b, h, wide, d], &device);
                    match old {
                        Some(old) if from > 0 => {
                            let seen = old.slice([0..b, 0..h, 0..from, 0..d]);
                            fresh.slice_assign([0..b, 0..h, 0..from, 0..d], seen)
                        }
                        _ => fresh,
                    }
                }
            };
            old.slice_assign([0..b, 0..h, from..to, 0..d], new)
        });
        self.len = to;
        let all = both.each_ref().map(|x| {
            let [b, h, _, d] = x.dims();
            x.clone().slice([0..b, 0..h, 0..to, 0..d])
        });
        self.both = Some(both);
        all
    }

    /// Keeps some batch rows, in this order, as beam search does.
    ///
    /// # Shapes
    /// `rows: [B′]`
    pub fn select(&mut self, rows: Tensor<1, burn::tensor::Int>) {
        if let Some(both) = self.both.take() {
            self.both = Some(both.map(|x| x.select(0, rows.clone())));
        }
    }
}
