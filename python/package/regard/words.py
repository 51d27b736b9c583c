"""Shortcuts for scores, biases and normalisers with settings.

Each is one call of regard.score, regard.bias or regard.normalizer, which accept every name of
regard.variants()."""

from __future__ import annotations

from typing import Optional, Sequence, Union

import numpy as np

from ._regard import Bias, Normalizer, Score, bias, normalizer, score

Ints = Union[np.ndarray, Sequence[int]]


def relative(segments: Optional[Ints] = None) -> Score:
    """Relative positions as in Transformer-XL and XLNet. With segments, int [B, S], there is also a
    term for whether query and key are in the same segment, with the parameters segment and x."""
    return score("relative", segments=segments)


def edge(
    slope: float = 0.2, indptr: Optional[Ints] = None, indices: Optional[Ints] = None
) -> Score:
    """Graph attention, LeakyReLU(a_q·q + a_k·k), with negative slope `slope`. With a graph in CSR
    form, int [T + 1] and [nnz], LeakyReLU(a_q·q + a_k·k + edge): the parameter edge [H, nnz] is a
    scalar for each edge and head; pairs that are not edges have 0."""
    return score("edge", slope=slope, indptr=indptr, indices=indices)


def gatv2(
    slope: float = 0.2, indptr: Optional[Ints] = None, indices: Optional[Ints] = None
) -> Score:
    """GATv2, v·LeakyReLU(q + k), with negative slope `slope`. With a graph in CSR form, int [T + 1]
    and [nnz], v·LeakyReLU(q + k + edge): the parameter edge [H, nnz, D] has the features of each
    edge; pairs that are not edges have zeros."""
    return score("gatv2", slope=slope, indptr=indptr, indices=indices)


def alibi(slopes: np.ndarray) -> Bias:
    """ALiBi, -slopes[h]·|p - j|, slopes float32 [H]; see regard.alibi_slopes(heads)."""
    return bias("alibi", slopes=slopes)


def table(table: np.ndarray) -> Bias:
    """Relative position bias: table[h, j - p], distances clipped, float32 [H, 2·reach + 1]."""
    return bias("table", table=table)


def edge_bias(indptr: Ints, indices: Ints, values: np.ndarray) -> Bias:
    """Scalar bias for each edge and head of a graph in CSR form: values float32 [nnz, H]."""
    return bias("edge", indptr=indptr, indices=indices, values=values)


def gaussian_bias(
    centres: np.ndarray, sigma: Union[float, np.ndarray], after: bool = False
) -> Bias:
    """Gaussian bias, -(j - centres[b, i])²/(2·sigma²), centres float32 [B, T], sigma a number. With
    after, its exponential multiplies the weights instead, which are not renormalised (Luong 2015,
    eq. 10)."""
    return bias("gaussian_after" if after else "gaussian", centres=centres, sigma=sigma)


def gumbel(temperature: float = 1.0, seed: int = 0) -> Normalizer:
    """Hard attention to the key with the largest score with Gumbel noise; the gradient is that of
    softmax((s + noise)/temperature)."""
    return normalizer("gumbel", temperature=temperature, seed=seed)


def reinforce(seed: int = 0) -> Normalizer:
    """Hard attention to one key, sampled from the softmax; scores learn through its
    log-probability, which regard.choose returns and whose gradient regard.attend_vjp takes as
    dlog_prob."""
    return normalizer("reinforce", seed=seed)
