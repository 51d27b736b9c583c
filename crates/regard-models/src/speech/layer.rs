//! One layer of the encoder: truncated self-attention and a feed-forward layer, both pre-norm.

use super::config::{Config, SpeechPositions};
use crate::checkpoint::Binder;
use crate::text::activation;
use regard_attention::layers::{
    Block, BlockConfig, FeedForwardConfig, SelfAttentionConfig, alibi_slopes,
};
use regard_attention::{Attention, Init, WeightInit};

pub(super) fn block(config: &Config, init: &mut Init) -> Block {
    let Config { hidden_size: m, num_attention_heads: heads, dropout, .. } = *config;
    let weights = WeightInit::Xavier;
    let relative = config.position_embedding_type == SpeechPositions::Relative;
    let block = BlockConfig {
        attention: SelfAttentionConfig {
            weights,
            dropout: config.attention_dropout,
            ..SelfAttentionConfig::new(m, heads)
        },
        distances: relative.then(|| config.farthest()),
        forward: FeedForwardConfig {
            hidden: config.intermediate_size,
            activation: activation("hidden_act", &config.hidden_act).expect("it was checked"),
            dropout,
            weights,
            ..FeedForwardConfig::new(m)
        },
        dropout: [dropout; 2],
        ..BlockConfig::new(m, heads)
    };
    block.init(init)
}

pub(super) fn bind(b: &mut Binder, block: &mut Block) {
    b.optional_norm("attention_norm", &mut block.attention_norm);
    let names = ["attention.query", "attention.key", "attention.value"];
    b.packed(&names, &mut block.attention.qkv);
    b.linear("attention.output", &mut block.attention.out);
    if let Some(distances) = &mut block.distances {
        b.tensor("attention.distances", &mut distances.table);
    }
    b.norm("forward_norm", &mut block.forward_norm);
    b.linear("up", &mut block.forward.up);
    b.linear("down", &mut block.forward.down);
}

/// Adds ALiBi slopes to an attention, unless the block has learned biases for distances.
pub(super) fn placed(block: &Block, attention: Attention) -> Attention {
    match &block.distances {
        Some(_) => attention,
        None => {
            let device = block.forward_norm.gamma.device();
            attention.alibi(alibi_slopes(block.attention.heads.queries, &device))
        }
    }
}
