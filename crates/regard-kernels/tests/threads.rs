//! Law 2: results do not depend on the number of threads, bitwise. Alone in its binary, so that
//! no other test holds the pool.

#[path = "it/problem.rs"]
#[allow(dead_code)]
mod problem;

use problem::*;
use regard_kernels::pool::set_threads;

#[test]
fn the_number_of_threads_does_not_matter() {
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
