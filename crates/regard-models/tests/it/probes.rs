//! Changes to layers of a model, and gradients of their weights.

use crate::batch::largest_difference;
use crate::texts::numbers;
use burn::tensor::{Device, Tensor};
use regard_attention::Mode;
use regard_attention::layers::Intervention;
use regard_attention::mask::window;
use regard_models::text::{self, Head, Probe, TextModel, Texts};
use serde_json::json;

/// A model of each body with attention.
fn models(device: &Device) -> Vec<Box<dyn TextModel>> {
    let types = [
        ("bert", Head::Tokens),
        ("gpt2", Head::Tokens),
        ("modernbert", Head::Tokens),
        ("xlnet", Head::Tokens),
        ("llama", Head::Words),
        ("qwen3", Head::Words),
        ("gemma2", Head::Words),
        ("gemma3_text", Head::Words),
    ];
    let make = |(name, head): (&str, Head)| {
        let config = json!({
            "model_type": name, "vocab_size": 23, "num_labels": 3, "initializer_range": 0.4,
            "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 12, "n_embd": 8, "n_layer": 2, "n_head": 2, "d_model": 8,
            "d_inner": 12, "pad_token_id": 0, "local_attention": 4, "num_key_value_heads": 1,
            "head_dim": 6, "query_pre_attn_scalar": 6, "sliding_window": 4,
            "max_position_embeddings": 16,
        });
        text::create(&config, head, 3, device).unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    types.map(make).into()
}

fn texts(packed: bool) -> Texts {
    let mut texts = Texts::new();
    texts.push(&[5, 9, 4, 20, 7]);
    texts.push(&[8, 3, 6, 11, 2][..if packed { 3 } else { 5 }]);
    texts
}

fn loss(model: &dyn TextModel, texts: &Texts, probe: &mut Probe) -> Tensor<1> {
    model.probe(texts, None, probe).logits.unwrap().powi_scalar(2).sum()
}

/// Scaling a head scales its attention weights: so the gradient of the weights, times the weights,
/// is the derivative by the head's factor, which finite differences approximate.
#[test]
fn gradients_of_weights_are_those_of_differences() {
    for model in models(&Device::flex().autodiff()) {
        let name = model.config()["model_type"].clone();
        for (layer, packed) in [(0, false), (1, false), (0, true)] {
            let texts = texts(packed);
            let mut probe = Probe::default().differentiate(layer);
            let gradients = loss(&*model, &texts, &mut probe).backward();
            let gradient = probe.gradient(layer, &gradients).unwrap();
            assert!(probe.weights(1 - layer).is_none());
            let weights = probe.weights(layer).unwrap().clone().inner();
            let [b, h, t, _] = gradient.dims();
            assert_eq!([b, h, t], if packed { [1, 2, 8] } else { [2, 2, 5] });
            let by_head = (gradient * weights).sum_dim(3).sum_dim(2).sum_dim(0);
            for (head, got) in numbers(&by_head).into_iter().enumerate() {
                let at = |factor: f32| {
                    let change = Intervention::new().scale_head(head, factor);
                    let mut probe = Probe::default().change(layer, change);
                    f64::from(numbers(&loss(&*model, &texts, &mut probe))[0])
                };
                let (step, all) = (1e-2, at(1.0));
                let want = (at(1.0 + step) - at(1.0 - step)) / (2.0 * f64::from(step));
                let near = (f64::from(got) - want).abs() <= 5e-3 * (want.abs() + 0.1 * all);
                assert!(near, "{name} layer {layer} head {head}: got {got}, want {want}");
            }
        }
    }
}

#[test]
fn changes_reach_the_layer_that_they_name() {
    for model in models(&Device::flex()) {
        let name = model.config()["model_type"].clone();
        let texts = texts(false);
        let hidden = |probe: &mut Probe| numbers(&model.probe(&texts, None, probe).hidden);
        let plain = numbers(&model.forward(&texts, None, Mode::Eval).hidden);
        assert_eq!(hidden(&mut Probe::default()), plain, "{name}");
        let same = Intervention::new().scale_head(1, 1.0).temperature(1.0);
        let off = largest_difference(&hidden(&mut Probe::default().change(0, same)), &plain);
        assert!(off <= 1e-6, "{name}: {off}");
        for layer in [0, 1] {
            for change in [
                Intervention::new().scale_head(0, 0.0),
                Intervention::new().mask(window(1, 1)),
                Intervention::new().temperature(0.2),
            ] {
                let mut probe = Probe::default().record().change(layer, change.clone());
                let changed = hidden(&mut probe);
                let off = largest_difference(&changed, &plain);
                assert!(off > 1e-3, "{name} layer {layer}: {change:?} changes nothing");
                // Weights of earlier layers are unchanged.
                let mut before = Probe::default().record();
                hidden(&mut before);
                let of = |probe: &Probe| numbers(probe.weights(0).unwrap());
                assert!(layer == 0 || of(&before) == of(&probe), "{name}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "got layer 2, the model has 2")]
fn a_layer_that_is_not_there_is_told() {
    let model = models(&Device::flex()).remove(0);
    model.probe(&texts(false), None, &mut Probe::default().differentiate(2));
}
