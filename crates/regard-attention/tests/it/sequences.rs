//! What works on sequences without padding: windows, convolution, recurrence, pooling.

use crate::close::{USUAL, check, numbers, random};
use burn::module::Param;
use burn::tensor::{Device, Tensor};
use regard_attention::layers::*;
use regard_attention::ops::{Activation, Cell};
use regard_attention::{Init, Mode};

const LENGTHS: [usize; 4] = [3, 1, 6, 2];

fn input(seed: u64, shape: [usize; 2]) -> Tensor<2> {
    Init::new(seed, &Device::flex()).normal(shape, 1.0).val()
}

/// One long sequence among many short ones, so that there is more than one batch.
fn uneven() -> Vec<usize> {
    [vec![2, 700], vec![1; 30], vec![5; 20]].concat()
}

fn alone(x: &Tensor<2>, sequences: &Sequences, which: usize) -> Tensor<2> {
    let (first, n) = (sequences.firsts()[which], sequences.lengths()[which]);
    x.clone().slice([first..first + n, 0..x.dims()[1]])
}

#[test]
fn windows_end_with_their_sequence() {
    let x = Tensor::<2>::from_floats([[1.], [2.], [3.], [4.]], &Device::flex());
    let windows = |width| numbers(Sequences::new(&[3, 1]).windows(x.clone(), width));
    assert_eq!(windows(1), [1., 2., 3., 4.]);
    assert_eq!(windows(3), [0., 1., 2., 1., 2., 3., 2., 3., 0., 0., 4., 0.]);
    // Of an even width, the longer half comes after.
    assert_eq!(windows(2), [1., 2., 2., 3., 3., 0., 4., 0.]);
    let wide = &numbers(Sequences::new(&[3, 1]).windows(x, 9))[27..];
    assert_eq!(wide, [0., 0., 0., 0., 4., 0., 0., 0., 0.]);
}

#[test]
fn gradients_of_windows_and_batches() {
    let sequences = Sequences::new(&LENGTHS);
    for width in [1, 2, 3, 5] {
        check(&format!("windows of {width}"), &[random(1, &[12, 3])], USUAL, |x| {
            sequences.windows(x.two(0), width)
        });
    }
    check("rows", &[random(1, &[12, 3])], USUAL, |x| {
        sequences.rows(x.two(0), |x, _| x.clone() * x)
    });
    for pool in [Pool::Mean, Pool::Max, Pool::Last { both_ways: true }] {
        check(&format!("{pool:?}"), &[random(1, &[12, 4])], USUAL, |x| {
            Pooling { attention: None, pool }.forward(x.two(0), &sequences)
        });
    }
    let arrays = [random(1, &[12, 4]), random(2, &[4, 5]), random(3, &[1, 5]), random(4, &[1, 5])];
    check("attention", &arrays, USUAL, |x| {
        let parameter = |i| Param::from_tensor(x.two(i));
        let key = Linear::new(parameter(1), None, Activation::Identity);
        let (query, v) = (parameter(2), parameter(3));
        let attention = Some(PoolingAttention { key, query, v });
        Pooling { attention, pool: Pool::Attention { hidden: 5 } }.forward(x.two(0), &sequences)
    });
}

#[test]
fn pools_are_what_they_are_called() {
    let x = Tensor::<2>::from_floats([[1., -1.], [5., 0.], [3., 7.]], &Device::flex());
    let sequences = Sequences::new(&[2, 1]);
    let pool = |pool| {
        let layer = PoolingConfig { width: 2, pool }.init(&mut Init::new(1, &Device::flex()));
        numbers(layer.forward(x.clone(), &sequences))
    };
    assert_eq!(pool(Pool::Mean), [3., -0.5, 3., 7.]);
    assert_eq!(pool(Pool::Max), [5., 0., 3., 7.]);
    assert_eq!(pool(Pool::Last { both_ways: false }), [5., 0., 3., 7.]);
    assert_eq!(pool(Pool::Last { both_ways: true }), [5., -1., 3., 7.]);
}

#[test]
fn attention_pools_by_the_weights_that_it_tells() {
    let (x, lengths) = (input(3, [12, 6]), LENGTHS);
    let sequences = Sequences::new(&lengths);
    let config = PoolingConfig { width: 6, pool: Pool::Attention { hidden: 4 } };
    let layer = config.init(&mut Init::new(4, &Device::flex()));
    let weights = numbers(layer.weights(x.clone(), &sequences).unwrap());
    let (rows, pooled) = (numbers(x.clone()), numbers(layer.forward(x, &sequences)));
    for (s, (first, n)) in sequences.firsts().iter().zip(lengths).enumerate() {
        let weights = &weights[*first..first + n];
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        for column in 0..6 {
            let sum: f64 =
                weights.iter().enumerate().map(|(i, w)| w * rows[(first + i) * 6 + column]).sum();
            assert!((pooled[s * 6 + column] - sum).abs() < 1e-5);
        }
    }
}

/// Law 2: whoever else is there, and however many batches there are.
#[test]
fn a_sequence_says_the_same_alone_and_among_others() {
    let init = &mut Init::new(5, &Device::flex());
    let (lengths, width) = (uneven(), 12);
    let sequences = Sequences::new(&lengths);
    let x = input(6, [lengths.iter().sum(), width]);
    let lstm =
        RecurrentConfig { bidirectional: true, ..RecurrentConfig::new(Cell::Lstm, width, 9) }
            .init(init);
    let activation = Activation::Relu;
    let convolution =
        ConvolutionConfig { inputs: width, outputs: 10, width: 3, activation }.init(init);
    let pools = [Pool::Attention { hidden: 7 }, Pool::Mean, Pool::Max];
    let pools = pools.map(|pool| PoolingConfig { width, pool }.init(init));
    let run = |x: Tensor<2>, sequences: &Sequences| {
        let read = |x, lengths: &[usize]| lstm.forward(x, None, Some(lengths), Mode::Eval).0;
        let mut all = vec![
            (false, sequences.rows(x.clone(), read)),
            (false, convolution.forward(x.clone(), sequences)),
        ];
        all.extend(pools.iter().map(|pool| (true, pool.forward(x.clone(), sequences))));
        all
    };
    let together = run(x.clone(), &sequences);
    for which in [0, 1, 2, 31, 40, 51] {
        let one = run(alone(&x, &sequences, which), &Sequences::new(&lengths[which..=which]));
        for (i, ((pooled, together), (_, one))) in together.iter().zip(one).enumerate() {
            let among = match pooled {
                true => together.clone().slice([which..which + 1, 0..together.dims()[1]]),
                false => alone(together, &sequences, which),
            };
            assert_eq!(numbers(among), numbers(one), "part {i} of sequence {which}");
        }
    }
}
