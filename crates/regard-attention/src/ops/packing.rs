//! Packed copies of weights, reused by many products.
//!
//! A product packs its right operand so that registers read it in order. For thousands of rows the
//! cost is negligible; for the 16 or 128 tokens of one text it is a third of the time or more. A
//! weight that does not change is therefore kept in packed form as well.
//!
//! A weight is identified by its memory. While a [`Packing`] holds a weak reference to it, the
//! memory can neither be written in place nor be reused by another tensor, so a packed copy is
//! never out of date. (A writer moves the contents to a new `Arc`.)

use burn::tensor::Bytes;
use burn_flex::{FlexTensor, Layout};
use regard_kernels::gemm::{Matrix, Packed};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Below this many rows a weight is not packed: reading it takes as long as multiplying by it.
pub(super) const ROWS: usize = 8;

/// The same for weights that a third-level cache may hold, by number of elements: the beams of one
/// sentence are worth a packed copy.
const SMALL_ROWS: usize = 2;
const SMALL: usize = 4 << 20;

/// Maximum total size of packed weights in the process, in bytes.
static LIMIT: AtomicUsize = AtomicUsize::new(1 << 30);
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Limits the total memory of packed weights in the process; the default is 1 GiB. Copies that
/// exist already stay until their layer is dropped. Weights beyond the limit are packed in every
/// product, as they are in training; results are bitwise the same.
pub fn set_packing_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Cache of a packed weight. Clones of a layer share it.
#[derive(Clone, Debug, Default)]
pub struct Packing(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Memory of the last used weight.
    of: Weak<Bytes>,
    /// Offset, shape and strides of the weight within that memory.
    layout: Option<Layout>,
    kept: Option<Arc<Kept>>,
}

/// A packed weight, and its size in bytes, which counts towards the limit.
pub(super) struct Kept(Packed, usize);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Kept({:?})", self.0.shape())
    }
}

impl Kept {
    /// Packs a weight of this shape, unless that exceeds the limit.
    pub fn new(shape: [usize; 2], pack: impl FnOnce() -> Packed) -> Option<Kept> {
        let bytes = Packed::floats(shape) * size_of::<f32>();
        let limit = LIMIT.load(Ordering::Relaxed);
        let room = |kept: usize| kept.checked_add(bytes).filter(|all| *all <= limit);
        KEPT.try_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(Kept(pack(), bytes))
    }

    pub fn packed(&self) -> &Packed {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Packing {
    /// Drops the packed weight.
    pub(super) fn forget(&self) -> Option<Arc<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).kept = None;
        None
    }

    /// Returns the packed weight if packing pays off for this many rows: from its second use on.
    pub(super) fn of(&self, tensor: &FlexTensor, weight: Matrix, rows: usize) -> Option<Arc<Kept>> {
        let (memory, layout) = (tensor.data_arc(), tensor.layout());
        // A weight with contiguous rows is read as fast without packing.
        let small = weight.shape().iter().product::<usize>() <= SMALL;
        let enough = if small { SMALL_ROWS } else { ROWS };
        if rows < enough && layout.strides()[1] == 1 {
            return None;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = std::ptr::eq(state.of.as_ptr(), Arc::as_ptr(&memory));
        if !same || state.layout.as_ref() != Some(layout) {
            let of = Arc::downgrade(&memory);
            *state = State { of, layout: Some(layout.clone()), kept: None };
        } else if state.kept.is_none() && rows >= enough {
            state.kept = Kept::new(weight.shape(), || Packed::new(weight)).map(Arc::new);
        }
        state.kept.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Activation, linear, linear_packed};
    use super::*;
    use burn::tensor::{Device, Tensor, TensorData};

    fn numbers(shape: [usize; 2], seed: usize) -> Tensor<2> {
        let one = |i: usize| ((i * 2654435761 + seed * 97) % 1000) as f32 / 500.0 - 1.0;
        let all: Vec<f32> = (0..shape[0] * shape[1]).map(one).collect();
        Tensor::from_data(TensorData::new(all, shape), &Device::flex())
    }

    fn bits(x: Tensor<2>) -> Vec<u32> {
        x.to_data().try_to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    }

    /// Uses a weight repeatedly, with different numbers of rows.
    fn used(weight: &Tensor<2>, packing: &Packing) {
        let [i, _] = weight.dims();
        for rows in [1, 9, 16, 3, 130, 1] {
            let x = numbers([rows, i], rows);
            let plain = linear(x.clone(), weight.clone(), None, Activation::Gelu);
            let kept = linear_packed(x, weight.clone(), None, Activation::Gelu, packing);
            assert!(bits(plain) == bits(kept), "{rows} rows of {:?}", weight.dims());
        }
        assert!(packing.0.lock().unwrap().kept.is_some());
    }

    #[test]
    fn a_kept_weight_gives_the_same_bits() {
        for shape in [[7, 5], [64, 64], [385, 49], [100, 131]] {
            let packing = Packing::default();
            used(&numbers(shape, 1), &packing);
            used(&numbers([shape[1], shape[0]], 2).transpose(), &packing);
        }
    }

    #[test]
    fn a_weight_that_changes_is_not_taken_for_what_it_was() {
        let packing = Packing::default();
        let mut weight = numbers([33, 33], 3);
        used(&weight, &packing);
        // In place, if Burn allows it.
        weight = weight.slice_assign([3..4, 0..33], numbers([1, 33], 4));
        used(&weight, &packing);
        weight = weight * 2.0;
        used(&weight, &packing);
        used(&weight.clone().transpose(), &packing);
        used(&weight.slice([0..20, 0..33]), &packing);
    }

    #[test]
    fn memory_that_was_watched_is_used_again() {
        let packing = Packing::default();
        let ([a, b], x) = ([6, 7].map(|seed| numbers([256, 256], seed)), numbers([16, 256], 8));
        for _ in 0..4 {
            // Its memory is that of the previous weight, which was dropped.
            let weight = linear(a.clone(), b.clone(), None, Activation::Identity);
            let plain = linear(x.clone(), weight.clone(), None, Activation::Identity);
            for _ in 0..3 {
                let (x, weight) = (x.clone(), weight.clone());
                let kept = linear_packed(x, weight, None, Activation::Identity, &packing);
                assert!(bits(plain.clone()) == bits(kept));
            }
        }
    }

    #[test]
    fn a_weight_that_learns_is_not_kept() {
        let packing = Packing::default();
        let weight = numbers([50, 50], 5);
        used(&weight, &packing);
        assert!(KEPT.load(Ordering::Relaxed) >= 50 * 50 * 4);
        let device = Device::flex().autodiff();
        let learning = Tensor::from_data(weight.to_data(), &device).require_grad();
        let x = Tensor::<2>::from_data(numbers([9, 50], 1).to_data(), &device);
        linear_packed(x, learning, None, Activation::Identity, &packing);
        assert!(packing.0.lock().unwrap().kept.is_none());
    }
}
