"""Every attention as one fused, differentiable operation on numpy arrays.

    out_i = sum_j normalize_j( score(q_i, k_j) + bias(i, j) | mask(i, j) ) * v_j

`| mask` means: over the keys j that the mask allows. An attention is a choice of score, bias, mask
and normaliser:

    >>> import numpy, regard
    >>> x = numpy.random.randn(1, 4, 100, 64).astype(numpy.float32)   # [B, H, T, D]
    >>> out = regard.attend(x, x, x, mask=regard.causal() & regard.window(31, 0))
    >>> out, grads = regard.attend_vjp(x, x, x, dout=numpy.ones_like(out))
    >>> p = regard.weights(x, x, rows=[99])                           # [1, 4, 1, 100]

Memory is linear in the sequence length, except for requested outputs such as weights. Masked
blocks are skipped. Arrays are float32 with any strides and are not copied; the GIL is released
while kernels run. `regard.variants()` lists every score, mask, bias and normaliser.

Letters in the documentation: B batch, H query heads, Hk key-value heads (a divisor of H),
T queries, S keys, D width of queries and keys, E width of values.
"""

from ._regard import (
    Bias,
    Mask,
    Normalizer,
    Score,
    __version__,
    alibi_slopes,
    around,
    bias,
    causal,
    dense,
    edges,
    expanded,
    full,
    global_tokens,
    isa,
    lengths,
    matmul,
    normalizer,
    peak_gflops,
    permutation,
    prefix,
    score,
    segments,
    set_threads,
    threads,
    variants,
    window,
)
from .engine import attend, attend_vjp, choose, summarize, weights
from .words import (
    alibi,
    edge,
    edge_bias,
    gatv2,
    gaussian_bias,
    gumbel,
    reinforce,
    relative,
    table,
)

__all__ = [
    # Attention.
    "attend",
    "attend_vjp",
    "choose",
    "summarize",
    "weights",
    "variants",
    # Masks.
    "Mask",
    "around",
    "causal",
    "dense",
    "edges",
    "expanded",
    "full",
    "global_tokens",
    "lengths",
    "permutation",
    "prefix",
    "segments",
    "window",
    # Scores with settings.
    "Score",
    "score",
    "edge",
    "gatv2",
    "relative",
    # Biases.
    "Bias",
    "bias",
    "alibi",
    "alibi_slopes",
    "edge_bias",
    "gaussian_bias",
    "table",
    # Normalisers with settings.
    "Normalizer",
    "normalizer",
    "gumbel",
    "reinforce",
    # The machine.
    "isa",
    "matmul",
    "peak_gflops",
    "set_threads",
    "threads",
]
