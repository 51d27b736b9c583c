//! The autodiff node of every operation.
//!
//! Burn fixes the number of a node's parents at compile time; here it is the number of the
//! operation's float operands, and one generic node serves all numbers.

use super::{Operands, Operation};
use burn::backend::autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};
use burn::backend::{Autodiff, Flex, tensor::FloatTensor};
use std::marker::PhantomData;

#[derive(Debug)]
struct Node<O>(PhantomData<O>);

/// State of a node until its backward. Operands share their memory with the tensors.
#[derive(Clone, Debug)]
struct Kept<O: Operation> {
    operation: O,
    operands: Operands<Flex>,
    saved: O::Saved,
}

impl<O: Operation, const N: usize> Backward<Flex, N> for Node<O> {
    type State = Kept<O>;

    fn backward(self, ops: Ops<Kept<O>, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let Kept { operation, operands, saved } = ops.state;
        let found = operation.backward(&operands, saved, dy, &wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

fn with_parents<O: Operation, C: CheckpointStrategy, const N: usize>(
    operands: Operands<Autodiff<Flex, C>>,
    operation: O,
) -> FloatTensor<Autodiff<Flex, C>> {
    let Operands { floats, ints } = operands;
    let (floats, guards): (Vec<_>, Vec<_>) = floats.into_iter().map(|x| x.into_parts()).unzip();
    let guards: [_; N] = guards.try_into().expect("one parent for each float operand");
    let operands = Operands { floats, ints };
    let prepared = Node::<O>(PhantomData).prepare::<C>(guards);
    match prepared.compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let (y, saved) = operation.forward(&operands, true);
            prepared.finish(Kept { operation, operands, saved }, y)
        }
        OpsKind::UnTracked(prepared) => prepared.finish(operation.forward(&operands, false).0),
    }
}

/// Runs the forward and records the node.
pub(super) fn record<O: Operation, C: CheckpointStrategy>(
    operands: Operands<Autodiff<Flex, C>>,
    operation: O,
) -> FloatTensor<Autodiff<Flex, C>> {
    macro_rules! by_number {
        ($($n:literal)*) => {
            match operands.floats.len() {
                $($n => with_parents::<O, C, $n>(operands, operation),)*
                n => panic!("{operation:?}: got {n} float operands, need 1 to 16"),
            }
        };
    }
    by_number!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
}
