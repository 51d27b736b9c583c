//! Law 4, of a training step as Burn takes it: a thousand steps leave nothing behind. Alone in its
//! binary, because what is looked at is the memory of the process.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use regard_attention::layers::{
    Call, FeedForward, FeedForwardConfig, Norm, NormConfig, SelfAttention, SelfAttentionConfig,
};
use regard_attention::{AdamW, AdamWConfig, Attention, Init, Mode, mask::causal};

#[derive(Module, Debug)]
struct Block {
    norm: Norm,
    attention: SelfAttention,
    feed_forward: FeedForward,
}

/// Bytes that the process has in memory, where the system says.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}

#[test]
fn a_thousand_steps_leave_nothing_behind() {
    let Some(_) = resident() else {
        eprintln!("skipped: this system does not say how much memory a process has");
        return;
    };
    let (device, width) = (Device::flex().autodiff(), 32);
    let mut init = Init::new(7, &device);
    let mut block = Block {
        norm: NormConfig::layer(width).init(&mut init),
        attention: SelfAttentionConfig::new(width, 4).init(&mut init),
        feed_forward: FeedForwardConfig::new(width).init(&mut init),
    };
    let mut adamw = AdamW::new(AdamWConfig::default());
    let attention = Attention::dot().mask(causal());
    let mut settled = 0;
    for step in 1..=1000u64 {
        // Batches of sentences have another shape in every step.
        let long = 8 + (step * 7 % 40) as usize;
        let x = Tensor::<3>::ones([2, long, width], &device) * (step as f32 * 0.1).sin();
        let mode = Mode::Train { seed: 1, step };
        let call = Call::new(&attention).mode(mode);
        let y = x.clone() + block.attention.forward(block.norm.forward(x), call);
        let y = block.feed_forward.forward(y, mode);
        let grads = (y.clone() * y).mean().backward();
        block = adamw.step(1e-3, block, grads);
        match step {
            // By then every shape was there several times, and the shelf holds what it will hold.
            400 => settled = resident().unwrap(),
            1000 => {
                let now = resident().unwrap();
                let grown = now.saturating_sub(settled);
                assert!(grown < 1 << 20, "from {settled} to {now} bytes");
            }
            _ => {}
        }
    }
}
