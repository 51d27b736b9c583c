"""The functions that compute: keywords and documentation here, the work in `_regard`."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _regard
from ._regard import Bias, Mask, Normalizer, Score

Array = np.ndarray
Biases = Union[None, Array, Bias, Sequence[Union[Array, Bias]]]
Params = Optional[Mapping[str, Any]]


def attend(
    q: Array,
    k: Array,
    v: Array,
    *,
    score: Union[str, Score] = "dot",
    mask: Optional[Mask] = None,
    bias: Biases = None,
    normalize: Union[str, Normalizer] = "softmax",
    scale: Optional[float] = None,
    params: Params = None,
    dropout: float = 0.0,
    seed: int = 0,
    positions: Optional[Array] = None,
) -> Array:
    """Attends: for each query, a weighted sum of the values.

    Arguments, float32 arrays with any strides:
      q: [B, H, T, D]; k: [B, Hk, S, D]; v: [B, Hk, S, E], where Hk divides H (grouped heads).
      score: how well a query and a key fit. A name: dot, additive, general, gaussian, boxcar,
        epanechnikov, keyvalue, relative, edge, gatv2; or an object with settings:
        regard.relative(segments), regard.edge(slope), regard.gatv2(slope); both of the latter
        with (slope, indptr, indices) for features of edges.
      mask: which keys a query may see, e.g. regard.causal() & regard.lengths([30, 17]).
        A query that may see none gets zeros.
      bias: added to the scores: float32 [T, S] or [B or 1, H or 1, T, S], regard.alibi(slopes),
        regard.table(table), regard.edge_bias(indptr, indices, values),
        regard.gaussian_bias(centres, sigma, after=False), or a list of these.
      normalize: scores to weights. A name: softmax, softmax1, sparsemax, entmax15, sigmoid,
        uniform, hard, gumbel, reinforce; or regard.gumbel(temperature, seed),
        regard.reinforce(seed).
      scale: of the score; 1/sqrt(D) for dot, keyvalue and relative unless given, else 1.
      params: the score's learned parameters by name: additive and gatv2 v[H, D]; general
        w[H, Dq, Dk]; gaussian, boxcar, epanechnikov sigma; keyvalue a, b; edge a_q, a_k [H, D];
        relative r[H, S+T, D], u, w [H, D] and, with segments, segment[H, 2, D], x[H, D]; with a
        graph, edge also has edge[H, nnz], gatv2 edge[H, nnz, D].
      dropout: the probability that a weight is dropped; the others are scaled up.
      seed: of dropout and, if normalize is a name, of hard choices.
      positions: where queries stand among the keys. By default query i stands at i + S - T.
        int [B]: query i of row b stands at i + positions[b]. float32 [B, T]: at positions[b, i],
        which may be between keys.

    Returns [B, H, T, E]; where heads are inside in q's memory, [B, T, H, D], they are in the
    result's too, so that to merge them copies nothing.

    Raises TypeError for arrays of another type, ValueError for shapes that do not fit, MemoryError
    for results that do not fit into memory. Ctrl-C ends the call.
    """
    spec = (score, mask, bias, normalize, scale, params, dropout, seed, positions)
    return _regard.attend(q, k, v, spec)


def attend_vjp(
    q: Array,
    k: Array,
    v: Array,
    dout: Optional[Array],
    *,
    score: Union[str, Score] = "dot",
    mask: Optional[Mask] = None,
    bias: Biases = None,
    normalize: Union[str, Normalizer] = "softmax",
    scale: Optional[float] = None,
    params: Params = None,
    dropout: float = 0.0,
    seed: int = 0,
    positions: Optional[Array] = None,
    dweights: Optional[Array] = None,
    dlog_prob: Optional[Array] = None,
) -> Tuple[Array, "dict[str, Array]"]:
    """Attends, and takes a gradient back: the vector-Jacobian product.

    dout [B, H, T, E] is the gradient of a loss by the output, or None. dweights [B, H, T, S] is
    its gradient by the weights, where they are an output too (pointers, coverage); dlog_prob
    [B, H, T] by the log-probability of a sampled choice (regard.choose, "reinforce").
    Everything else is as for regard.attend.

    Returns (out, grads). grads["q"], grads["k"] and grads["v"] have the shapes of the inputs.
    Each parameter of the score has an entry of its name, each bias one or two: "bias" (an
    array), "slopes" (alibi), "table", "values" (edge_bias), "centres" and "sigma"
    (gaussian_bias). A name that is taken already gets a suffix, in the order score, then biases:
    the gradient of the parameter v of "additive" and "gatv2" is grads["v_1"], a second dense
    bias is "bias_1".
    """
    spec = (score, mask, bias, normalize, scale, params, dropout, seed, positions)
    return _regard.attend_vjp(q, k, v, (dout, dweights, dlog_prob), spec)


def weights(
    q: Array,
    k: Array,
    v: Optional[Array] = None,
    *,
    score: Union[str, Score] = "dot",
    mask: Optional[Mask] = None,
    bias: Biases = None,
    normalize: Union[str, Normalizer] = "softmax",
    scale: Optional[float] = None,
    params: Params = None,
    dropout: float = 0.0,
    seed: int = 0,
    positions: Optional[Array] = None,
    heads: Optional[Sequence[int]] = None,
    rows: Optional[Sequence[int]] = None,
) -> Array:
    """The weights that regard.attend multiplies values with, exactly.

    heads and rows (lists of query heads and of queries) say which are wanted; without them, all.
    v is needed only by the score "keyvalue". Everything else is as for regard.attend.

    Returns [B, asked heads, asked rows, S].
    """
    spec = (score, mask, bias, normalize, scale, params, dropout, seed, positions)
    return _regard.weights(q, k, v, (heads, rows), spec)


def summarize(
    q: Array,
    k: Array,
    v: Optional[Array] = None,
    *,
    score: Union[str, Score] = "dot",
    mask: Optional[Mask] = None,
    bias: Biases = None,
    normalize: Union[str, Normalizer] = "softmax",
    scale: Optional[float] = None,
    params: Params = None,
    dropout: float = 0.0,
    seed: int = 0,
    positions: Optional[Array] = None,
    top: int = 1,
) -> "dict[str, Array]":
    """What one may want to know of the weights, without ever having them all.

    Arguments are as for regard.weights; top says how many keys to name for each query.

    Returns a dict:
      top_keys: int32 [B, H, T, top], the heaviest keys, heaviest first (the first is an
        alignment), -1 where there are fewer; of equal ones the lowest comes first.
      top_weights: [B, H, T, top], their weights.
      entropy: [B, H, T], -sum p ln p.
      column_mass: [B, H, S], the sum of the weights that each key received.
    """
    spec = (score, mask, bias, normalize, scale, params, dropout, seed, positions)
    return _regard.summarize(q, k, v, top, spec)


def choose(
    q: Array,
    k: Array,
    v: Array,
    *,
    score: Union[str, Score] = "dot",
    mask: Optional[Mask] = None,
    bias: Biases = None,
    normalize: Union[str, Normalizer] = "hard",
    scale: Optional[float] = None,
    params: Params = None,
    dropout: float = 0.0,
    seed: int = 0,
    positions: Optional[Array] = None,
) -> Tuple[Array, Array, Array]:
    """Attends to one key of each query: normalize is "hard", "gumbel" or "reinforce".

    Returns (out [B, H, T, E], index int32 [B, H, T], log_prob [B, H, T]): the value of the chosen
    key, which key it is, and the logarithm of its probability under the softmax. A query that
    may see no key gets zeros, -1 and 0.
    """
    spec = (score, mask, bias, normalize, scale, params, dropout, seed, positions)
    return _regard.choose(q, k, v, spec)
