//! Today's decoders: Llama, SmolLM3, Mistral, Qwen3, Gemma 2 and 3. They differ in a few choices,
//! which each family's file reads from its configuration; the layers are the same.

/// Names of the keys that a function reads from a configuration.
macro_rules! keys {
    ($read:path) => {{
        static NAMES: std::sync::OnceLock<Vec<&str>> = std::sync::OnceLock::new();
        NAMES.get_or_init(|| $crate::keys::Keys::names($read))
    }};
}

mod config;
mod gemma;
mod llama;
mod mistral;
mod qwen3;

use crate::checkpoint::Binder;
use crate::keys::Keys;
use crate::text::{Body, Family, Following, Head, Probe, Sizes, Texts, Walks, dot_in_words};
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use config::{Config, LayerAttention};
use regard_attention::layers::{
    Block, Call, Dropout, Embedding, KvCache, Norm, NormPlacement, Residual, Rotary,
};
use regard_attention::mask::{Mask, causal, window};
use regard_attention::plan::{DecoderLayer, DecoderLayers};
use regard_attention::{Attention, Init};
use serde_json::Value;

/// A family, and the function that reads its configuration.
type Row = (&'static Family, fn(&Keys) -> Result<Config, String>);

/// All families, one row each.
const ROWS: &[Row] = &[
    (&llama::LLAMA, llama::read),
    (&llama::SMOLLM3, llama::read_smollm3),
    (&mistral::MISTRAL, mistral::read),
    (&qwen3::QWEN3, qwen3::read),
    (&gemma::GEMMA2, gemma::read),
    (&gemma::GEMMA3, gemma::read_gemma3),
];

/// The decoder without its heads.
#[derive(Module, Debug)]
pub(crate) struct Decoder {
    words: Embedding,
    dropout: Dropout,
    layers: Vec<Block>,
    last: Norm,
    rotary: Vec<Rotary>,
    #[module(skip)]
    family: &'static Family,
    #[module(skip)]
    settings: Settings,
}

/// What is not learned.
#[derive(Clone, Debug)]
struct Settings {
    layers: Vec<LayerAttention>,
    embedding_scale: Option<f32>,
    scale: Option<f32>,
    cap: Option<f32>,
}

impl Body for Decoder {
    const FAMILIES: &'static [&'static Family] = &{
        let mut all = [ROWS[0].0; ROWS.len()];
        let mut i = 0;
        while i < ROWS.len() {
            all[i] = ROWS[i].0;
            i += 1;
        }
        all
    };

    const GENERATES: bool = true;

    type Config = Config;

    fn configure(json: &Value, _head: Head) -> Result<Config, String> {
        let (_, read) = ROWS
            .iter()
            .find(|(family, _)| json["model_type"] == family.model_type)
            .ok_or("model_type: is not a decoder's")?;
        read(&Keys::new(json))
    }

    fn new(config: &Config, init: &mut Init) -> Decoder {
        let &Config { family, embedding_scale, scale, cap, .. } = config;
        Decoder {
            words: config.words.init(init),
            dropout: Dropout::new(config.dropout, init),
            layers: config.layers.iter().map(|_| config.block.init(init)).collect(),
            last: config.block.norm.init(init),
            rotary: config.rotary.iter().map(|rotary| rotary.init()).collect(),
            family,
            settings: Settings { layers: config.layers.clone(), embedding_scale, scale, cap },
        }
    }

    fn sizes(config: &Config) -> Sizes {
        config.sizes
    }

    fn family(&self) -> &'static Family {
        self.family
    }

    fn bind(&mut self, b: &mut Binder) {
        b.embedding("embed_tokens", &mut self.words);
        for (i, layer) in self.layers.iter_mut().enumerate() {
            b.at(&format!("layers.{i}"), |b| bind_layer(b, layer));
        }
        b.norm("norm", &mut self.last);
    }

    fn read(&self, texts: &Texts, probe: &mut Probe) -> Tensor<3> {
        let x = self.embedded(texts.words(&self.words.table.device()));
        let x = self.dropout.forward(x, probe.mode());
        let (attentions, places) = (self.attentions(texts.mask(true)), texts.rotary_places());
        let entry = self.layers[0].entry();
        let mut residual = Residual::new(NormPlacement::Pre, entry, x);
        for (i, (layer, attention)) in self.layers.iter().zip(&attentions).enumerate() {
            probe.hidden(&residual.sum());
            let call = probe.call(attention).rotary(self.turned(i)).positions(&places);
            layer.forward_residual(&mut residual, call, self.norm_after(i));
        }
        let x = residual.input();
        probe.hidden(&x);
        x
    }

    fn words(&self) -> Option<&Embedding> {
        Some(&self.words)
    }

    fn words_mut(&mut self) -> Option<&mut Embedding> {
        Some(&mut self.words)
    }

    fn longest(&self) -> Option<usize> {
        Some(self.rotary[0].angles.positions())
    }

    fn attention(&self) -> Vec<String> {
        let layer = |(layer, of): (&Block, &LayerAttention)| {
            let heads = dot_in_words(&layer.attention);
            let groups = match layer.attention.heads.keys {
                keys if keys == layer.attention.heads.queries => String::new(),
                keys => format!(", {keys} key heads"),
            };
            let places = if of.rotary.is_some() { ", rotary" } else { ", no positions" };
            let cap = self.settings.cap.map_or(String::new(), |cap| format!(", at most ±{cap}"));
            let seen = match of.window {
                None => "a token sees itself and the tokens before it".into(),
                Some(window) => format!("a token sees the last {window} tokens"),
            };
            format!("{heads}{groups}{places}{cap}; {seen}")
        };
        self.layers.iter().zip(&self.settings.layers).map(layer).collect()
    }

    fn decoder(&self) -> Option<DecoderLayers<'_>> {
        let Settings { layers, embedding_scale, scale, cap, .. } = &self.settings;
        let layer = |(i, block)| DecoderLayer {
            block,
            rotary: self.turned(i),
            window: layers[i].window,
            scale: *scale,
            cap: *cap,
        };
        Some(DecoderLayers {
            words: &self.words,
            positions: None,
            embedding_scale: *embedding_scale,
            layers: self.layers.iter().enumerate().map(layer).collect(),
            last: &self.last,
        })
    }

    fn follow(&self, read: &[&[u32]]) -> Option<Box<dyn Following + '_>> {
        Some(self.planned_or_walk(read))
    }
}

fn bind_layer(b: &mut Binder, layer: &mut Block) {
    b.optional_norm("input_layernorm", &mut layer.attention_norm);
    b.at("self_attn", |b| {
        let widths = layer.attention.widths();
        b.packed_shares(&["q_proj", "k_proj", "v_proj"], &widths, &mut layer.attention.qkv);
        b.linear("o_proj", &mut layer.attention.out);
        if let Some([q, k]) = &mut layer.attention.head_norms {
            b.norm("q_norm", q);
            b.norm("k_norm", k);
        }
    });
    match &mut layer.output_norms {
        None => b.norm("post_attention_layernorm", &mut layer.forward_norm),
        Some([attention, forward]) => {
            b.norm("post_attention_layernorm", attention);
            b.norm("pre_feedforward_layernorm", &mut layer.forward_norm);
            b.norm("post_feedforward_layernorm", forward);
        }
    }
    b.packed(&["mlp.gate_proj", "mlp.up_proj"], &mut layer.forward.up);
    b.linear("mlp.down_proj", &mut layer.forward.down);
}

impl Decoder {
    /// `words: [B, T]` → `[B, T, M]`
    fn embedded(&self, words: Tensor<2, Int>) -> Tensor<3> {
        let x = self.words.forward(words);
        match self.settings.embedding_scale {
            Some(scale) => x * scale,
            None => x,
        }
    }

    /// The attention of each layer.
    fn attentions(&self, mask: Mask) -> Vec<Attention> {
        let Settings { layers, scale, cap, .. } = &self.settings;
        let attention = |layer: &LayerAttention| {
            let mask = match layer.window {
                Some(last) => mask.clone() & window(last - 1, 0),
                None => mask.clone(),
            };
            let attention = cap.map_or(Attention::dot(), Attention::soft_cap).mask(mask);
            match scale {
                Some(scale) => attention.scale(*scale),
                None => attention,
            }
        };
        layers.iter().map(attention).collect()
    }

    /// Rotary positions of a layer.
    fn turned(&self, layer: usize) -> Option<&Rotary> {
        self.settings.layers[layer].rotary.map(|at| &self.rotary[at])
    }

    /// The norm that follows a layer.
    fn norm_after(&self, layer: usize) -> Option<&Norm> {
        self.layers.get(layer + 1).map_or(Some(&self.last), Block::entry)
    }
}

impl Walks for Decoder {
    fn caches(&self) -> Vec<KvCache> {
        vec![KvCache::new(); self.layers.len()]
    }

    fn walk(&self, words: Tensor<2, Int>, caches: &mut [KvCache]) -> Tensor<3> {
        let x = self.embedded(words);
        let mut residual = Residual::new(NormPlacement::Pre, self.layers[0].entry(), x);
        let attentions = self.attentions(causal());
        let layers = self.layers.iter().zip(&attentions).zip(caches);
        for (i, ((layer, attention), cache)) in layers.enumerate() {
            let call = Call::new(attention).rotary(self.turned(i)).cache(cache);
            layer.forward_residual(&mut residual, call, self.norm_after(i));
        }
        residual.input()
    }
}

#[cfg(test)]
mod tests;
