//! Scaled dot-product attention against PyTorch's, forward and backward: golden tensors made by
//! `fixtures/make/attention.py`.

use super::problem::close;
use regard_kernels::attention::{Attention, AttentionInputs, InputGradients, Upstream, mask::*};
use regard_kernels::view::{View, ViewMut};
use serde_json::Value;

struct Golden(Value);

impl Golden {
    fn shape(&self, name: &str) -> [usize; 4] {
        let shape = self.0[name]["shape"].as_array().unwrap();
        std::array::from_fn(|axis| shape[axis].as_u64().unwrap() as usize)
    }
    fn data(&self, name: &str) -> Vec<f32> {
        self.wide(name).iter().map(|x| *x as f32).collect()
    }
    fn wide(&self, name: &str) -> Vec<f64> {
        let data = self.0[name]["data"].as_array().unwrap();
        data.iter().map(|x| x.as_f64().unwrap()).collect()
    }
    fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }
}

#[test]
fn dot_product_attention_is_pytorchs() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/attention");
    let mut checked = 0;
    for name in ["dense", "causal", "mask", "grouped", "long", "wide"] {
        let text = std::fs::read_to_string(format!("{folder}/sdpa_{name}.json")).unwrap();
        let golden = Golden(serde_json::from_str(&text).unwrap());
        let mut attention = Attention::dot();
        if golden.has("causal") {
            attention = attention.mask(causal());
        }
        if golden.has("mask") {
            let allowed: Vec<bool> = golden.wide("mask").iter().map(|x| *x != 0.0).collect();
            let shared = golden.0["mask"]["shape"].as_array().unwrap().len() == 2;
            attention =
                attention.mask(if shared { dense(allowed) } else { dense_per_head(allowed) });
        }
        let [q, k, v, dout] = ["q", "k", "v", "dout"].map(|x| golden.data(x));
        let (qs, ks, vs, os) =
            (golden.shape("q"), golden.shape("k"), golden.shape("v"), golden.shape("out"));
        let inputs = AttentionInputs::new(
            View::new(&q, qs).unwrap(),
            View::new(&k, ks).unwrap(),
            View::new(&v, vs).unwrap(),
        );
        let mut out = vec![0.0; dout.len()];
        let saved = attention.forward(&inputs, &ViewMut::new(&mut out, os).unwrap()).unwrap();
        close(name, "out", &out, &golden.wide("out"), 1e-5);
        let (mut dq, mut dk, mut dv) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]);
        {
            let to = InputGradients {
                dq: ViewMut::new(&mut dq, qs).unwrap(),
                dk: ViewMut::new(&mut dk, ks).unwrap(),
                dv: ViewMut::new(&mut dv, vs).unwrap(),
            };
            let upstream = (View::new(&out, os).unwrap(), View::new(&dout, os).unwrap());
            let upstream = Upstream { out: Some(upstream), ..Default::default() };
            attention.backward(&inputs, &saved, &upstream, &to).unwrap();
        }
        for (what, got) in [("dq", dq), ("dk", dk), ("dv", dv)] {
            close(name, what, &got, &golden.wide(what), 1e-5);
        }
        checked += 1;
    }
    assert_eq!(checked, 6);
}
