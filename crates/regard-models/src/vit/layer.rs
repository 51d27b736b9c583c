//! One pre-norm layer of an image model.

use super::Config;
use crate::checkpoint::Binder;
use regard_attention::layers::{
    Block, BlockConfig, FeedForwardConfig, NormConfig, SelfAttentionConfig,
};
use regard_attention::ops::Activation;
use regard_attention::{Init, WeightInit};

pub(super) fn block(config: &Config, activation: Activation, init: &mut Init) -> Block {
    let (width, heads) = (config.hidden_size, config.num_attention_heads);
    let weights = WeightInit::Normal(config.initializer_range);
    let block = BlockConfig {
        norm: norm(config),
        attention: SelfAttentionConfig {
            dropout: config.attention_probs_dropout_prob,
            weights,
            ..SelfAttentionConfig::new(width, heads)
        },
        forward: FeedForwardConfig {
            hidden: config.intermediate_size,
            activation,
            weights,
            ..FeedForwardConfig::new(width)
        },
        dropout: [config.hidden_dropout_prob; 2],
        ..BlockConfig::new(width, heads)
    };
    let mut block = block.init(init);
    if !config.qkv_bias {
        block.attention.qkv.bias = None;
    }
    block
}

pub(super) fn bind(b: &mut Binder, block: &mut Block) {
    b.optional_norm("layernorm_before", &mut block.attention_norm);
    let names = ["query", "key", "value"].map(|name| format!("attention.attention.{name}"));
    b.packed(&names.each_ref().map(String::as_str), &mut block.attention.qkv);
    b.linear("attention.output.dense", &mut block.attention.out);
    b.norm("layernorm_after", &mut block.forward_norm);
    b.linear("intermediate.dense", &mut block.forward.up);
    b.linear("output.dense", &mut block.forward.down);
}

pub(super) fn norm(config: &Config) -> NormConfig {
    NormConfig { eps: config.layer_norm_eps, ..NormConfig::layer(config.hidden_size) }
}
