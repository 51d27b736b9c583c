//! Every kind of model, with every attention and every switch that it has.

use serde_json::{Value, json};

/// Sizes of the source and target vocabularies.
pub const READS: usize = 17;
pub const WRITES: usize = 13;

/// Every kind of attention, by name.
pub fn looks() -> Vec<(&'static str, Value)> {
    let hard = |method: &str| json!({ "kind": "hard", "method": method });
    vec![
        ("global", json!({ "kind": "global" })),
        ("sparsemax", json!({ "kind": "sparsemax" })),
        ("entmax15", json!({ "kind": "entmax15" })),
        ("softmax1", json!({ "kind": "softmax1" })),
        ("straight-through", hard("straight-through")),
        ("gumbel", json!({ "kind": "hard", "method": "gumbel", "temperature": 0.7 })),
        ("reinforce", hard("reinforce")),
        ("window", json!({ "kind": "window", "left": 2, "right": 1 })),
        ("expanded", json!({ "kind": "expanded", "left": 1, "right": 2, "stride": 2 })),
        ("mixed", json!({ "kind": "mixed", "left": 1, "right": 1 })),
        ("global-tokens", json!({ "kind": "global-tokens", "count": 2, "left": 1, "right": 1 })),
    ]
}

fn with(base: &Value, more: &[(&str, Value)]) -> Value {
    let mut config = base.clone();
    more.iter().for_each(|(key, value)| config[*key] = value.clone());
    config
}

/// A small configuration of a recurrent model.
pub fn recurrent(model_type: &str, more: &[(&str, Value)]) -> Value {
    let base = json!({
        "model_type": model_type, "vocab_size": READS, "decoder_vocab_size": WRITES,
        "embedding_size": 6, "hidden_size": 8, "bidirectional": true,
    });
    with(&base, more)
}

/// A small configuration of a Transformer.
pub fn transformer(more: &[(&str, Value)]) -> Value {
    let base = json!({
        "model_type": "transformer", "vocab_size": READS, "decoder_vocab_size": WRITES,
        "d_model": 16, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 2, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 20,
        "share_encoder_decoder_embeddings": false, "max_position_embeddings": 12,
    });
    with(&base, more)
}

/// All configurations, by name.
pub fn all() -> Vec<(String, Value)> {
    let mut zoo = vec![];
    let yes = json!(true);
    for (name, look) in looks() {
        let look = [("attention", look)];
        zoo.push((format!("bahdanau {name}"), recurrent("bahdanau", &look)));
        zoo.push((format!("luong {name}"), recurrent("luong", &look)));
        let [look] = look;
        let at_once = [look.clone(), ("input_feeding", json!(false))];
        zoo.push((format!("luong {name}, at once"), recurrent("luong", &at_once)));
        zoo.push((format!("transformer {name}"), transformer(&[look])));
    }
    for model in ["rnn", "bahdanau", "luong"] {
        for cell in ["rnn", "gru", "lstm"] {
            for both in [false, true] {
                let shape = [("cell", json!(cell)), ("bidirectional", json!(both))];
                let name = format!("{model} {cell}{}", if both { ", both ways" } else { "" });
                zoo.push((name.clone(), recurrent(model, &shape)));
                let deep = [("num_layers", json!(2)), ("readout", json!("deep"))];
                let shape = [&shape[..], &deep].concat();
                zoo.push((format!("{name}, two layers, deep"), recurrent(model, &shape)));
                if model != "rnn" {
                    let shape = [&shape[..], &[("start", json!("learned"))]].concat();
                    zoo.push((format!("{name}, two layers, learned"), recurrent(model, &shape)));
                }
            }
        }
        let tied = [("tie_word_embeddings", yes.clone())];
        zoo.push((format!("{model} tied"), recurrent(model, &tied)));
        let plain = [&tied[..], &[("hidden_size", json!(6))]].concat();
        zoo.push((format!("{model} tied, as wide"), recurrent(model, &plain)));
    }
    zoo.push(("bahdanau narrow".into(), recurrent("bahdanau", &[("attention_size", json!(5))])));
    for score in ["dot", "general", "concat"] {
        for (name, locality) in [
            ("global", json!({ "kind": "global" })),
            ("local-m", json!({ "kind": "local-m", "width": 1 })),
            ("local-p", json!({ "kind": "local-p", "width": 2 })),
        ] {
            for fed in [true, false] {
                let row = [
                    ("score", json!(score)),
                    ("locality", locality.clone()),
                    ("input_feeding", json!(fed)),
                    ("bidirectional", json!(score != "dot")),
                ];
                zoo.push((format!("luong {score} {name} {fed}"), recurrent("luong", &row)));
            }
        }
    }
    for (name, more) in [
        ("pre", vec![("norms", json!("pre"))]),
        ("learned places", vec![("positions", json!("learned"))]),
        ("untied", vec![("tie_word_embeddings", json!(false))]),
        ("unscaled", vec![("scale_embedding", json!(false)), ("alignment_layer", json!(0))]),
        (
            "shared",
            vec![
                ("share_encoder_decoder_embeddings", yes),
                ("decoder_vocab_size", json!(READS)),
                ("activation_function", json!("swish")),
            ],
        ),
    ] {
        zoo.push((format!("transformer {name}"), transformer(&more)));
    }
    let shared = [
        ("share_encoder_decoder_embeddings", json!(true)),
        ("decoder_vocab_size", json!(READS)),
        ("tie_word_embeddings", json!(false)),
    ];
    zoo.push(("transformer shared, untied".into(), transformer(&shared)));
    for (name, look) in looks() {
        if ["window", "expanded", "global-tokens"].contains(&name) {
            let near = [("encoder_attention", look)];
            zoo.push((format!("transformer encoder {name}"), transformer(&near)));
        }
    }
    zoo
}
