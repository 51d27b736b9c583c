//! Embeddings of texts, and exact search among them.

use regard_attention::ops::Scan;
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut, product};
use regard_kernels::view;
use regard_models::checkpoint::{Array, Dtype};
use regard_models::{Error, Result};
use std::borrow::Cow;

/// Deviation of a squared norm from 1 that rounding explains, with much to spare.
const ROUNDING: f64 = 1e-3;

/// Embeddings of texts: a row of norm 1 for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// Single precision, `[texts, dimension]`, aligned, so that it is read without copying.
    array: Array,
}

/// A text near a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Row of the text, from 0.
    pub row: usize,
    /// Cosine similarity to the query.
    pub score: f32,
}

impl Embeddings {
    /// Takes an array `[texts, dimension]` in single precision.
    ///
    /// # Errors
    /// If it has another shape or type, no rows, or a row whose norm is not 1. A row of zeros is
    /// valid: its similarity to everything is 0.
    pub fn new(array: Array) -> Result<Embeddings, String> {
        let [rows, width] = array.shape[..] else {
            return Err(format!("the embeddings are of shape {:?}, need two axes", array.shape));
        };
        if rows == 0 || width == 0 || u32::try_from(rows).is_err() {
            return Err(format!("got {rows} embeddings of {width} numbers"));
        }
        if array.dtype() != Dtype::F32 {
            return Err(format!("the embeddings are of type {:?}, need F32", array.dtype()));
        }
        let floats = array.floats().ok_or("the embeddings are not numbers")?;
        // Written so that NaN fails.
        let is_unit = |row: &[f32]| {
            let squares = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>();
            squares == 0.0 || (squares - 1.0).abs() < ROUNDING
        };
        if let Some(row) = floats.chunks_exact(width).position(|row| !is_unit(row)) {
            return Err(format!("embedding {} is not of norm 1", row + 1));
        }
        let copied = match floats {
            Cow::Borrowed(_) => None,
            Cow::Owned(floats) => Some(floats),
        };
        let array = copied.map_or(array, |floats| Array::new(vec![rows, width], floats));
        Ok(Embeddings { array })
    }

    /// Returns the number of texts.
    pub fn rows(&self) -> usize {
        self.array.shape[0]
    }

    /// Returns the number of elements of an embedding.
    pub fn dimension(&self) -> usize {
        self.array.shape[1]
    }

    /// Returns the array `[texts, dimension]`.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Returns the `most` rows with the highest cosine similarity to a query of norm 1, the highest
    /// first, and the first of equal ones first. All rows are compared.
    ///
    /// # Errors
    /// If the query is of another dimension.
    pub fn nearest(&self, query: &[f32], most: usize) -> Result<Vec<Neighbour>> {
        let (rows, width) = (self.rows(), self.dimension());
        if query.len() != width {
            return Err(Error::invalid(format!(
                "the query's embedding has {} numbers, those of the texts {width}",
                query.len()
            )));
        }
        let invalid = |error: view::Error| Error::invalid(error.to_string());
        let floats = self.array.floats().unwrap_or_default();
        let texts = Matrix::new(&floats, rows, width).map_err(invalid)?;
        let mut scores = vec![0.0; rows];
        // Every sum is taken in the same order, so that equal texts have equal scores.
        product(
            Matrix::new(query, 1, width).map_err(invalid)?,
            texts.t(),
            MatrixMut::new(&mut scores, 1, rows).map_err(invalid)?,
            Epilogue::default(),
        )
        .map_err(invalid)?;
        let mut scan = Scan::default();
        scan.row(&scores, most);
        let mut top = scan.top;
        top.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(top.into_iter().map(|(score, row)| Neighbour { row: row as usize, score }).collect())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use regard_kernels::rng::Stream;

    /// Random rows of norm 1.
    pub fn random(seed: u64, rows: usize, width: usize) -> Vec<f32> {
        let stream = Stream::new(seed, 0, 0);
        let mut all: Vec<f32> = (0..rows * width).map(|i| stream.normal(i as u64)).collect();
        for row in all.chunks_exact_mut(width) {
            let norm = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            row.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
        }
        all
    }

    pub fn embeddings(seed: u64, rows: usize, width: usize) -> Embeddings {
        Embeddings::new(Array::new(vec![rows, width], random(seed, rows, width))).unwrap()
    }

    #[test]
    fn nearest_are_those_of_a_naive_loop() {
        for (rows, width) in [(1, 1), (7, 3), (500, 16), (3000, 384), (257, 770)] {
            let all = embeddings(1, rows, width);
            let floats = all.array().floats().unwrap().into_owned();
            for seed in 2..5 {
                let query = random(seed, 1, width);
                let cosine = |row: &[f32]| -> f64 {
                    row.iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
                };
                let scores: Vec<f64> = floats.chunks_exact(width).map(cosine).collect();
                let mut order: Vec<usize> = (0..rows).collect();
                order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
                let most = rows.min(20);
                let found = all.nearest(&query, most).unwrap();
                assert_eq!(found.len(), most);
                for (found, wanted) in found.iter().zip(&order) {
                    // The order may differ where single precision makes no difference.
                    assert!((scores[found.row] - scores[*wanted]).abs() < 1e-6);
                    assert!((f64::from(found.score) - scores[found.row]).abs() < 1e-6);
                }
                let mut rows: Vec<usize> = found.iter().map(|found| found.row).collect();
                rows.sort_unstable();
                rows.dedup();
                assert_eq!(rows.len(), most, "a row was found twice");
            }
        }
    }

    #[test]
    fn equal_texts_come_in_their_order() {
        let [one, other] = [random(1, 1, 33), random(2, 1, 33)];
        // More rows than the tiles of a product, at both ends of it.
        let all: Vec<f32> =
            (0..900).flat_map(|i| if i % 300 == 7 { one.clone() } else { other.clone() }).collect();
        let all = Embeddings::new(Array::new(vec![900, 33], all)).unwrap();
        let rows = |query: &[f32], most| -> Vec<usize> {
            all.nearest(query, most).unwrap().iter().map(|found| found.row).collect()
        };
        assert_eq!(rows(&one, 5), [7, 307, 607, 0, 1]);
        assert_eq!(rows(&other, 8), [0, 1, 2, 3, 4, 5, 6, 8]);
        assert_eq!(rows(&one, 2000).len(), 900);
    }

    #[test]
    fn what_are_no_embeddings_is_refused() {
        let refused = |shape: Vec<usize>, floats: Vec<f32>| {
            Embeddings::new(Array::new(shape, floats)).unwrap_err()
        };
        assert!(refused(vec![4], vec![0.5; 4]).contains("two axes"));
        assert!(refused(vec![0, 4], vec![]).contains("0 embeddings"));
        assert!(refused(vec![2, 0], vec![]).contains("0 numbers"));
        assert!(refused(vec![2, 1], vec![1.0, 2.0]).contains("embedding 2 is not of norm 1"));
        assert!(refused(vec![1, 2], vec![f32::NAN, 0.0]).contains("norm 1"));
        assert!(refused(vec![1, 2], vec![f32::INFINITY, 0.0]).contains("norm 1"));
        let zeros = Embeddings::new(Array::new(vec![1, 2], vec![0.0; 2])).unwrap();
        assert_eq!(zeros.nearest(&[1.0, 0.0], 1).unwrap()[0].score, 0.0);
        let error = zeros.nearest(&[1.0], 1).unwrap_err().to_string();
        assert!(error.contains("has 1 numbers, those of the texts 2"), "{error}");
    }
}
