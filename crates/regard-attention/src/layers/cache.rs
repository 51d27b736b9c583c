//! KV cache: keys and values of earlier decoding steps, so that each step computes only its own.

use burn::tensor::{Device, Int, Tensor};

/// The cache grows by at least this many positions at a time.
const STEP: usize = 16;

/// KV cache of one layer.
#[derive(Clone, Debug, Default)]
pub struct KvCache {
    /// Keys and values, each `[B, Hk, capacity, D]`; the first `len` positions are in use.
    both: Option<[Tensor<4>; 2]>,
    len: usize,
    /// Batch rows that the next step continues, if they differ from the stored ones. They are
    /// gathered in one copy when something is appended.
    rows: Option<Tensor<1, Int>>,
}

impl KvCache {
    /// Creates an empty cache.
    pub fn new() -> KvCache {
        KvCache::default()
    }

    /// Returns the number of cached positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is cached.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends new keys and values, and returns all of them.
    ///
    /// # Shapes
    /// `k, v: [B, Hk, new, D]` → `[B, Hk, len, D]` each
    pub fn append(&mut self, k: Tensor<4>, v: Tensor<4>) -> [Tensor<4>; 2] {
        let [b, h, new, _] = k.dims();
        let (from, to) = (self.len, self.len + new);
        if let Some(rows) = self.rows.take()
            && let Some([old_k, old_v]) = self.both.take()
        {
            let gather = |old: Tensor<4>, new: Tensor<4>| {
                let [b, h, _, d] = old.dims();
                let seen = old.slice([0..b, 0..h, 0..from, 0..d]).select(0, rows.clone());
                Tensor::cat(vec![seen, new], 2)
            };
            let both = [gather(old_k, k), gather(old_v, v)];
            self.len = to;
            self.both = Some(both.clone());
            return both;
        }
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
                    // Half as much again, so that a long sequence is copied only a few times.
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

    /// Selects batch rows, in this order, as beam search does.
    ///
    /// # Shapes
    /// `rows: [B′]`
    pub fn select(&mut self, rows: Tensor<1, Int>) {
        self.rows = Some(match self.rows.take() {
            Some(before) => before.select(0, rows),
            None => rows,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row holds its own value, so that it can be followed.
    fn step(rows: &[f32], device: &Device) -> Tensor<4> {
        let data = burn::tensor::TensorData::new(rows.to_vec(), [rows.len(), 1, 1, 1]);
        Tensor::from_data(data, device)
    }

    #[test]
    fn rows_go_on_as_those_they_came_from() {
        let device = Device::flex();
        let mut cache = KvCache::new();
        let append = |cache: &mut KvCache, rows: &[f32]| {
            let [k, v] = cache.append(step(rows, &device), step(rows, &device));
            assert_eq!(k.to_data(), v.to_data());
            k.to_data().try_to_vec::<f32>().unwrap()
        };
        let select = |cache: &mut KvCache, rows: [i32; 3]| {
            cache.select(Tensor::from_ints(rows, &Device::flex()));
        };
        assert_eq!(append(&mut cache, &[1.0, 2.0]), [1.0, 2.0]);
        assert_eq!(append(&mut cache, &[3.0, 4.0]), [1.0, 3.0, 2.0, 4.0]);
        select(&mut cache, [1, 1, 0]);
        select(&mut cache, [2, 0, 1]);
        let all = append(&mut cache, &[5.0, 6.0, 7.0]);
        assert_eq!(all, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0, 2.0, 4.0, 7.0]);
        assert_eq!(append(&mut cache, &[8.0, 9.0, 0.0])[..4], [1.0, 3.0, 5.0, 8.0]);
        assert_eq!(cache.len(), 4);
    }
}
