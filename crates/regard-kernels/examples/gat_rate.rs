//! The rate of graph attention on a graph of Cora's size, and of additive attention.

use regard_kernels::attention::{Attention, Inputs, Upstream, mask::*, score};
use regard_kernels::rng::Stream;
use regard_kernels::view::{View, ViewMut};
use std::time::Instant;

fn best(mut f: impl FnMut()) -> f64 {
    (0..40)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn run(
    name: &str,
    attention: &Attention,
    q: [usize; 4],
    k: [usize; 4],
    e: usize,
    params: &[[usize; 4]],
) {
    let fill = |n: usize| -> Vec<f32> { (0..n).map(|i| (i as f32 * 0.7311).sin()).collect() };
    let len = |s: [usize; 4]| s.iter().product::<usize>();
    let (vs, os) = ([k[0], k[1], k[2], e], [q[0], q[1], q[2], e]);
    let (qd, kd, vd) = (fill(len(q)), fill(len(k)), fill(len(vs)));
    let pd: Vec<Vec<f32>> = params.iter().map(|s| fill(len(*s))).collect();
    let inputs = Inputs {
        q: View::new(&qd, q).unwrap(),
        k: View::new(&kd, k).unwrap(),
        v: View::new(&vd, vs).unwrap(),
        params: pd.iter().zip(params).map(|(d, s)| View::new(d, *s).unwrap()).collect(),
    };
    let mut out = vec![0.0; len(os)];
    let forward = best(|| {
        attention.forward(&inputs, &ViewMut::new(&mut out, os).unwrap()).unwrap();
    });
    let saved = attention.forward(&inputs, &ViewMut::new(&mut out, os).unwrap()).unwrap();
    let mut grads = [vec![0.0; qd.len()], vec![0.0; kd.len()], vec![0.0; vd.len()]];
    let dout = fill(len(os));
    let backward = best(|| {
        let [dq, dk, dv] = &mut grads;
        let to = (
            ViewMut::new(dq, q).unwrap(),
            ViewMut::new(dk, k).unwrap(),
            ViewMut::new(dv, vs).unwrap(),
        );
        let o = (View::new(&out, os).unwrap(), View::new(&dout, os).unwrap());
        let upstream = Upstream { out: Some(o), ..Default::default() };
        attention.backward(&inputs, &saved, &upstream, (&to.0, &to.1, &to.2)).unwrap();
    });
    println!("{name}: forward {:.3} ms, backward {:.3} ms", forward * 1e3, backward * 1e3);
}

fn main() {
    let (n, h, d) = (2708, 8, 8);
    let stream = Stream::new(0, 0, 0);
    let (mut indptr, mut indices) = (vec![0i64], vec![]);
    for i in 0..n {
        let mut row: Vec<i64> =
            (0..4).map(|e| (stream.bits(i * 4 + e) as u64 % n) as i64).chain([i as i64]).collect();
        row.sort_unstable();
        row.dedup();
        indices.extend(row);
        indptr.push(indices.len() as i64);
    }
    let n = n as usize;
    let gat = Attention::with_score(score::Edge { slope: 0.2 }).mask(edges(&indptr, &indices));
    let a = [1, h, 1, d];
    run("gat, Cora", &gat, [1, h, n, d], [1, h, n, d], d, &[a, a]);
    let additive = Attention::with_score(score::Additive);
    run(
        "additive 32×30×30×256",
        &additive,
        [32, 1, 30, 256],
        [32, 1, 30, 256],
        256,
        &[[1, 1, 1, 256]],
    );
    run(
        "additive 8×128×128×128",
        &additive,
        [8, 1, 128, 128],
        [8, 1, 128, 128],
        128,
        &[[1, 1, 1, 128]],
    );
}
