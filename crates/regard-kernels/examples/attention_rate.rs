//! The rate of forward and backward on one shape: `attention_rate B H T S D [mask] [seconds]`.

use regard_kernels::attention::{Attention, Inputs, Upstream, mask::*};
use regard_kernels::view::{View, ViewMut};
use std::time::Instant;

fn best(mut f: impl FnMut()) -> f64 {
    let started = Instant::now();
    let mut best = f64::INFINITY;
    let mut n = 0;
    while n < 5 || started.elapsed().as_secs_f64() < 0.6 {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed().as_secs_f64());
        n += 1;
    }
    best
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let n = |at: usize| args[at].parse::<usize>().unwrap();
    let [b, h, t, s, d] = [n(0), n(1), n(2), n(3), n(4)];
    let mask = match args.get(5).map(String::as_str) {
        Some("causal") => causal(),
        Some("window") => window(127, 0),
        _ => full(),
    };
    let fill = |n: usize| -> Vec<f32> { (0..n).map(|i| (i as f32 * 0.7311).sin()).collect() };
    let (q, k, v) = (fill(b * h * t * d), fill(b * h * s * d), fill(b * h * s * d));
    let (qs, ks) = ([b, h, t, d], [b, h, s, d]);
    let inputs = Inputs::new(
        View::new(&q, qs).unwrap(),
        View::new(&k, ks).unwrap(),
        View::new(&v, ks).unwrap(),
    );
    let attention = Attention::dot().mask(mask);
    let mut out = vec![0.0; q.len()];
    let mut pairs = 0;
    let forward = best(|| {
        pairs = attention.forward(&inputs, &ViewMut::new(&mut out, qs).unwrap()).unwrap().pairs;
    });
    if std::env::var("FWD").is_ok() {
        println!(
            "forward {:.3} ms, {:.1} GFLOP/s",
            forward * 1e3,
            4e-9 * pairs as f64 * d as f64 / forward
        );
        return;
    }
    let saved = attention.forward(&inputs, &ViewMut::new(&mut out, qs).unwrap()).unwrap();
    let mut grads = [vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
    let backward = best(|| {
        let [dq, dk, dv] = &mut grads;
        let dq = ViewMut::new(dq, qs).unwrap();
        let (dk, dv) = (ViewMut::new(dk, ks).unwrap(), ViewMut::new(dv, ks).unwrap());
        let o = View::new(&out, qs).unwrap();
        let upstream = Upstream { out: Some((o, inputs.q)), ..Default::default() };
        attention.backward(&inputs, &saved, &upstream, (&dq, &dk, &dv)).unwrap();
    });
    let rate =
        |products: f64, seconds: f64| products * 2.0 * pairs as f64 * d as f64 / seconds / 1e9;
    println!(
        "{b} {h} {t} {s} {d}: forward {:.3} ms {:.0} GFLOP/s, backward {:.3} ms {:.0} GFLOP/s",
        forward * 1e3,
        rate(2.0, forward),
        backward * 1e3,
        rate(5.0, backward)
    );
}
