//! Keys and values that decoding has seen, so that each step only adds its own.

use burn::tensor::{Device, Int, Tensor};

/// Grows by at least this many positions at a time.
const STEP: usize = 16;

/// The keys and values of one layer.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// `[B, Hk, room, D]` each; the first `len` positions are in use.
    both: Option<[Tensor<4>; 2]>,
    len: usize,
    /// The rows that the next step goes on from, if they are not those that are here: they are
    /// gathered when there is something to append, in one copy.
    rows: Option<Tensor<1, Int>>,
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

    /// Every row has one number of its own, so that it can be followed.
    fn step(rows: &[f32], device: &Device) -> Tensor<4> {
        let data = burn::tensor::TensorData::new(rows.to_vec(), [rows.len(), 1, 1, 1]);
        Tensor::from_data(data, device)
    }

    #[test]
    fn rows_go_on_as_those_they_came_from() {
        let device = Device::flex();
        let mut cache = Cache::new();
        let append = |cache: &mut Cache, rows: &[f32]| {
            let [k, v] = cache.append(step(rows, &device), step(rows, &device));
            assert_eq!(k.to_data(), v.to_data());
            k.to_data().try_to_vec::<f32>().unwrap()
        };
        let select = |cache: &mut Cache, rows: [i32; 3]| {
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
