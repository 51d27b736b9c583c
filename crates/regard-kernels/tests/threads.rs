//! Law 2: results do not depend on the number of threads, bitwise. Alone in its binary, so that
//! no other test holds the pool.

#[path = "it/problem.rs"]
#[allow(dead_code)]
mod problem;

use problem::*;
use regard_kernels::attention::{AttentionInputs, decode};
use regard_kernels::gemm::{Epilogue, Matrix, MatrixMut, product};
use regard_kernels::pool::set_threads;
use regard_kernels::view::{View, ViewMut};

fn same_on_all_threads(name: &str, result: &dyn Fn() -> Vec<f32>) {
    set_threads(1);
    let want = result();
    assert!(want.iter().any(|x| *x != 0.0), "{name}");
    for threads in [2, 3, 5] {
        set_threads(threads);
        assert_eq!(result(), want, "{name} on {threads} threads");
    }
}

fn floats(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1009) as f32 / 500.0 - 1.0).collect()
}

/// A product with 1,200 inputs, which are several passes, and 1,100 outputs.
fn product_of(rows: usize, turned: bool) -> Vec<f32> {
    let (k, n) = (1200, 1100);
    let (x, w) = (floats(rows * k), floats(k * n));
    let w = match turned {
        false => Matrix::new(&w, k, n).unwrap(),
        true => Matrix::new(&w, n, k).unwrap().t(),
    };
    let mut y = vec![0.0; rows * n];
    let to = MatrixMut::new(&mut y, rows, n).unwrap();
    product(Matrix::new(&x, rows, k).unwrap(), w, to, Epilogue::default()).unwrap();
    y
}

/// A decoding step of two rows with 12 heads over 300 and 211 keys.
fn decoded() -> Vec<f32> {
    let (b, h, s, d) = (2, 12, 300, 64);
    let (q, k, v) = (floats(b * h * d), floats(b * h * s * d), floats(b * h * s * d + 1));
    let mut out = vec![0.0; b * h * d];
    let strides = [h * d, d, d, 1].map(|x| x as isize);
    let keys = [h * s * d, s * d, d, 1].map(|x| x as isize);
    let inputs = AttentionInputs::new(
        View::strided(&q, [b, h, 1, d], strides, 0).unwrap(),
        View::strided(&k, [b, h, s, d], keys, 0).unwrap(),
        View::strided(&v, [b, h, s, d], keys, 1).unwrap(),
    );
    let room = ViewMut::strided(&mut out, [b, h, 1, d], strides).unwrap();
    decode(&inputs, Some(&[300, 211]), None, &room).unwrap();
    out
}

#[test]
fn the_number_of_threads_does_not_matter() {
    same_on_all_threads("decode", &decoded);
    // One and two rows are read in the order of memory, more side by side, tied tables in columns.
    for rows in [1, 2, 3, 7] {
        for turned in [false, true] {
            let name = format!("product of {rows} rows, turned: {turned}");
            same_on_all_threads(&name, &|| product_of(rows, turned));
        }
    }
    // One head and many: blocks of keys in parallel, or heads.
    for shape in [[1, 1, 1, 300, 700, 16, 8], [1, 4, 1, 130, 300, 8, 8], [3, 2, 2, 70, 90, 8, 8]]
        as [Shape; 3]
    {
        for (mask, rule) in masks(shape) {
            for norm in normalizers() {
                let problem =
                    Problem::new(shape, scores(shape)[0].clone(), (mask, rule.clone()), norm);
                set_threads(1);
                let (out, saved) = problem.forward();
                let (grads, _) = problem.backward(&out, &saved);
                for threads in [2, 3, 5] {
                    set_threads(threads);
                    let (again, saved) = problem.forward();
                    assert_eq!(out, again, "{} on {threads} threads", problem.name);
                    let (again, _) = problem.backward(&out, &saved);
                    assert_eq!(grads, again, "{} on {threads} threads", problem.name);
                }
            }
        }
    }
}
