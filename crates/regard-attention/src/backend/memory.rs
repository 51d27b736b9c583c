//! Buffers of results, and the kernels' views of tensors.
//!
//! The operating system clears a fresh allocation of several megabytes page by page on first touch,
//! and a training step makes hundreds of them: about a sixth of its time. So the kernels' results
//! live in recycled buffers: the shelf holds one more handle of each buffer, and a buffer whose
//! only handle is the shelf's is free. Batches have a different shape in every step, so a buffer
//! serves all lengths of its size class: it may be longer than the tensor in it.

use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, Shape, Tensor, TensorData};
use burn_flex::{FlexTensor, Layout};
use regard_kernels::gemm::Matrix;
use regard_kernels::view::{Error, View};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Smaller buffers, by number of floats, come from the allocator, which recycles them itself.
const SHELVED: usize = 16 * 1024;
/// Maximum total size of free buffers, in bytes; beyond it those free for longest are released.
const FREE_LIMIT: usize = 1 << 30;

/// Size class of a length: at most an eighth more, so that there are few different sizes.
fn class(len: usize) -> usize {
    let eighth = (len.next_power_of_two() / 16).max(1);
    len.next_multiple_of(eighth)
}

#[derive(Default)]
struct Shelf {
    /// Buffers by size class, in floats.
    buffers: HashMap<usize, Vec<FlexTensor>>,
    /// Total size of all buffers, free or in use, in bytes.
    bytes: usize,
}

static SHELF: Mutex<Option<Shelf>> = Mutex::new(None);

fn shelf() -> MutexGuard<'static, Option<Shelf>> {
    SHELF.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Buffer for a result. It holds stale floats of earlier use, all of which must be overwritten.
pub struct Buffer {
    /// `Some` until it becomes a tensor.
    room: Option<FlexTensor>,
    len: usize,
}

impl Buffer {
    /// Takes a buffer for `len` floats.
    pub fn new(len: usize) -> Buffer {
        if len < SHELVED {
            return Buffer { room: Some(fresh(len)), len };
        }
        let room = shelf().get_or_insert_default().take(class(len));
        Buffer { room: Some(room.unwrap_or_else(|| fresh(class(len)))), len }
    }

    /// Takes a buffer of zeros.
    pub fn zeroed(len: usize) -> Buffer {
        let mut buffer = Buffer::new(len);
        buffer.fill(0.0);
        buffer
    }

    /// Turns the buffer into a tensor in row-major order.
    pub fn tensor(self, shape: impl Into<Shape>) -> FlexTensor {
        self.with_layout(Layout::contiguous(shape.into()))
    }

    /// Turns the buffer into a tensor `[B, H, N, D]` whose memory is `[B, N, H, D]`, so that
    /// merging the heads copies nothing.
    pub fn tensor_by_rows(self, [b, h, n, d]: [usize; 4]) -> FlexTensor {
        let strides = by_rows([b, h, n, d]).to_vec();
        self.with_layout(Layout::new(Shape::new([b, h, n, d]), strides, 0))
    }

    fn with_layout(mut self, layout: Layout) -> FlexTensor {
        assert_eq!(layout.num_elements(), self.len, "a buffer is as long as its tensor");
        let room = self.room.take().expect("it becomes a tensor once");
        if self.len >= SHELVED {
            shelf().get_or_insert_default().put(class(self.len), room.clone());
        }
        room.with_layout(layout)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // A buffer that never became a tensor is free at once.
        if let Some(room) = self.room.take().filter(|_| self.len >= SHELVED) {
            shelf().get_or_insert_default().put(class(self.len), room);
        }
    }
}

impl Shelf {
    /// A free buffer of this size class, if there is one.
    fn take(&mut self, len: usize) -> Option<FlexTensor> {
        let same = self.buffers.entry(len).or_default();
        if let Some(free) = same.iter().position(FlexTensor::is_unique) {
            self.bytes -= 4 * len;
            return Some(same.swap_remove(free));
        }
        self.trim(len);
        None
    }

    fn put(&mut self, len: usize, room: FlexTensor) {
        self.bytes += 4 * len;
        self.buffers.entry(len).or_default().push(room);
    }

    /// Releases free buffers of other lengths while too much memory is free.
    fn trim(&mut self, keep: usize) {
        let free = |same: &[FlexTensor]| same.iter().filter(|x| x.is_unique()).count();
        let of = |(len, same): (&usize, &Vec<FlexTensor>)| 4 * len * free(same);
        let mut bytes: usize = self.buffers.iter().map(of).sum();
        if bytes <= FREE_LIMIT {
            return;
        }
        for (len, same) in self.buffers.iter_mut().filter(|(len, _)| **len != keep) {
            let before = same.len();
            same.retain(|x| !x.is_unique());
            let gone = 4 * len * (before - same.len());
            self.bytes -= gone;
            bytes -= gone;
            if bytes <= FREE_LIMIT / 2 {
                break;
            }
        }
    }
}

/// Strides of `[B, H, N, D]` in the memory of `[B, N, H, D]`.
pub(crate) fn by_rows([_, h, n, d]: [usize; 4]) -> [isize; 4] {
    let [h, n, d] = [h, n, d].map(|x| x as isize);
    [n * h * d, d, h * d, 1]
}

fn fresh(len: usize) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(vec![0f32; len], [len]))
}

/// Returns the total size of the recycled buffers, free or in use, in bytes.
pub fn recycled() -> usize {
    shelf().as_ref().map_or(0, |shelf| shelf.bytes)
}

/// Releases all buffers: free ones now, the others when their last tensor is dropped.
pub fn release_memory() {
    *shelf() = None;
}

impl Deref for Buffer {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.room.as_ref().expect("not a tensor yet").storage()[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        let room = self.room.as_mut().expect("not a tensor yet");
        // Weak references to the memory of a dropped tensor are invalidated here.
        &mut room.storage_mut()[..self.len]
    }
}

/// The values of a tensor in row-major order; copied only if they are not contiguous.
pub(crate) struct Dense {
    tensor: FlexTensor,
    from: usize,
    to: usize,
}

impl Dense {
    pub fn new(tensor: &FlexTensor) -> Dense {
        let tensor = if tensor.is_contiguous() { tensor.clone() } else { tensor.to_contiguous() };
        let (from, to) = tensor.layout().contiguous_offsets().expect("made contiguous");
        Dense { tensor, from, to }
    }
}

impl Deref for Dense {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.tensor.storage()[self.from..self.to]
    }
}

/// On the CPU and contiguous, possibly in a longer buffer.
pub(crate) fn on_cpu<const D: usize>(x: Tensor<D>) -> FlexTensor {
    let x = x.without_autodiff();
    let x = match super::fused(&x) {
        true => x.try_into_primitive::<Flex>().expect("it is on Flex"),
        false => FlexTensor::from_data(x.into_data().convert::<f32>()),
    };
    if x.is_contiguous() { x } else { x.to_contiguous() }
}

/// Replaces the contents of `out` by the values of a tensor in row-major order, with one copy where
/// [`Tensor::into_data`] makes two.
pub fn numbers<const D: usize>(x: Tensor<D>, out: &mut Vec<f32>) {
    out.clear();
    out.extend_from_slice(&Dense::new(&on_cpu(x)));
}

/// A tensor `[…, M]` as rows: leading axes are merged where their strides allow it.
pub(crate) struct Rows {
    tensor: FlexTensor,
    shape: [usize; 2],
    row: isize,
}

impl Rows {
    /// Copies only if the rows are not equally spaced or not contiguous.
    pub fn new(tensor: &FlexTensor) -> Rows {
        match Rows::at(tensor) {
            Some(rows) => rows,
            None => Rows::at(&tensor.to_contiguous()).expect("contiguous rows"),
        }
    }

    fn at(tensor: &FlexTensor) -> Option<Rows> {
        let (shape, strides) = (tensor.shape(), tensor.layout().strides());
        let last = shape.num_dims() - 1;
        if shape[last] > 1 && strides[last] != 1 {
            return None;
        }
        // From the innermost leading axis outwards, each must step over all of the one inside it.
        let (mut count, mut row) = (1, shape[last] as isize);
        for axis in (0..last).rev().filter(|axis| shape[*axis] != 1) {
            if count == 1 {
                row = strides[axis];
            } else if strides[axis] != row * count as isize {
                return None;
            }
            count *= shape[axis];
        }
        Some(Rows { tensor: tensor.clone(), shape: [count, shape[last]], row })
    }

    pub fn matrix(&self) -> Result<Matrix<'_>, Error> {
        let offset = self.tensor.layout().start_offset();
        Matrix::strided(self.tensor.storage(), self.shape, [self.row, 1], offset)
    }
}

/// A tensor `[R, C]` with any strides.
pub(crate) fn matrix(tensor: &FlexTensor) -> Result<Matrix<'_>, Error> {
    let (shape, layout) = (tensor.shape(), tensor.layout());
    if shape.num_dims() != 2 {
        return Err(Error(format!("a matrix: got shape {shape:?}, need two axes")));
    }
    let strides = [layout.strides()[0], layout.strides()[1]];
    Matrix::strided(tensor.storage(), [shape[0], shape[1]], strides, layout.start_offset())
}

/// A tensor `[B, H, N, D]` with any strides.
pub(crate) fn view4(tensor: &FlexTensor) -> Result<View<'_>, Error> {
    let (shape, layout) = (tensor.shape(), tensor.layout());
    let strides = layout.strides();
    if shape.num_dims() != 4 {
        return Err(Error(format!("got shape {shape:?}, need four axes")));
    }
    let shape = [shape[0], shape[1], shape[2], shape[3]];
    let strides = [strides[0], strides[1], strides[2], strides[3]];
    View::strided(tensor.storage(), shape, strides, layout.start_offset())
}

/// Integers of any width as `i64`, in row-major order.
pub(crate) fn integers(tensor: &FlexTensor) -> Vec<i64> {
    let tensor = tensor.to_contiguous();
    // A view of the first rows is contiguous too, in a longer buffer.
    let (from, to) = tensor.layout().contiguous_offsets().expect("made contiguous");
    fn wide<T: Copy + Into<i64>>(all: &[T]) -> Vec<i64> {
        all.iter().map(|x| (*x).into()).collect()
    }
    match tensor.dtype() {
        DType::I64 => tensor.storage::<i64>()[from..to].to_vec(),
        DType::I32 => wide(&tensor.storage::<i32>()[from..to]),
        DType::I16 => wide(&tensor.storage::<i16>()[from..to]),
        DType::I8 => wide(&tensor.storage::<i8>()[from..to]),
        DType::U32 => wide(&tensor.storage::<u32>()[from..to]),
        DType::U16 => wide(&tensor.storage::<u16>()[from..to]),
        DType::U8 => wide(&tensor.storage::<u8>()[from..to]),
        other => panic!("integers: got {other:?}, need at most 64 bits with a sign"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_its_tensors_are_gone() {
        let len = SHELVED + 7;
        let tensor = Buffer::zeroed(len).tensor([len]);
        let first = tensor.storage::<f32>().as_ptr();
        let other = Buffer::new(len).tensor([len]);
        assert_ne!(other.storage::<f32>().as_ptr(), first);
        drop(tensor);
        // Another length of the same class fits too, and the tensor has its own length.
        let near = Buffer::new(len + 9).tensor([len + 9]);
        assert_eq!(near.storage::<f32>().as_ptr(), first);
        assert_eq!(near.into_data().num_elements(), len + 9);
        assert!(recycled() >= 8 * len);
    }

    #[test]
    fn classes_are_few_and_close() {
        for len in [SHELVED, SHELVED + 1, 100_003, 1 << 20, (1 << 20) + 1, 12_345_678] {
            let room = class(len);
            assert!(len <= room && room <= len + len / 8 + 1, "{len}: {room}");
            assert_eq!(class(room), room, "a class is its own class");
        }
    }

    #[test]
    fn integers_of_a_view_are_its_own() {
        let all = FlexTensor::from_data(TensorData::new(vec![1i64, 2, 3, 4, 5, 6], [3, 2]));
        let first = all.clone().with_layout(all.layout().narrow(0, 0, 2));
        assert_eq!(integers(&first), [1, 2, 3, 4]);
        let last = all.clone().with_layout(all.layout().narrow(0, 2, 1));
        assert_eq!(integers(&last), [5, 6]);
    }

    #[test]
    fn rows_are_found_in_views_without_copying() {
        let data = TensorData::new((0..24).map(|x| x as f32).collect(), [2, 3, 4]);
        let x = FlexTensor::from_data(data);
        let base = x.storage::<f32>().as_ptr();
        for layout in [x.layout().clone(), x.layout().narrow(2, 1, 2), x.layout().narrow(0, 1, 1)] {
            let rows = Rows::new(&x.clone().with_layout(layout.clone()));
            assert_eq!(rows.tensor.storage::<f32>().as_ptr(), base, "{layout:?}");
            let got = rows.matrix().unwrap();
            assert_eq!(got.get(0, 1), (layout.start_offset() + 1) as f32);
        }
        let across = Rows::new(&x.clone().with_layout(x.layout().narrow(1, 0, 2)));
        assert_eq!(across.matrix().unwrap().get(2, 0), 12.0);
    }
}
