"""Public functions with keywords and documentation; `_regard` implements them."""

from __future__ import annotations

import textwrap
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
    """Computes attention: for each query, a weighted sum of the values.

    Arguments, float32 arrays with any strides:
      q: [B, H, T, D]; k: [B, Hk, S, D]; v: [B, Hk, S, E], where Hk divides H (grouped-query).
      score: score of a query and a key. A name: {score}; or, with settings,
        regard.score(name, ...).
      mask: the keys that a query may attend to, e.g. regard.causal() & regard.lengths([30, 17]);
        all if None. A query without allowed keys gets zeros.
      bias: added to the scores: float32 [T, S] or [B or 1, H or 1, T, S], or regard.bias(name, ...)
        with a name: {bias}; or a list of these.
      normalize: maps scores to weights. A name: {normalize}; or, with settings,
        regard.normalizer(name, ...).
      scale: factor of the score; if None the score's default, given by its formula in
        regard.variants().
      params: the score's learned parameters by name, with their shapes: {params}
      dropout: probability that a weight is dropped; the others are scaled by 1/(1 - dropout).
      seed: seed of dropout and, if normalize is a name, of hard choices.
      positions: positions of the queries among the keys. By default query i is at i + S - T.
        int [B]: query i of row b is at i + positions[b]. float32 [B, T]: at positions[b, i],
        which may lie between keys.

    Returns [B, H, T, E]. If q's memory layout is [B, T, H, D], so is the result's, and merging the
    heads copies nothing.

    Raises TypeError for arrays of another type, ValueError for shapes that do not match, and
    MemoryError for results that do not fit into memory. Ctrl-C ends the call.
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
    """Computes attention and its vector-Jacobian product.

    dout [B, H, T, E] is the gradient of a loss by the output, or None. dweights [B, H, T, S] is
    its gradient by the weights, if they are an output too (pointer networks, coverage);
    dlog_prob [B, H, T] by the log-probability of a sampled choice (regard.choose, "reinforce").
    The other arguments are those of regard.attend.

    Returns (out, grads). grads["q"], grads["k"] and grads["v"] have the shapes of the inputs.
    Each parameter of the score has an entry by its name, each bias one or two: "bias" (an
    array), "slopes" (alibi), and so on; see regard.variants(). A name that is already used gets
    a suffix, in the order score, then biases: the gradient of the parameter v of "additive" and
    "gatv2" is grads["v_1"], that of a second dense bias is grads["bias_1"].
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
    """Computes the attention weights, exactly those of regard.attend.

    heads and rows (lists of query heads and of queries) select weights; None selects all.
    v is needed only by the score "keyvalue". The other arguments are those of regard.attend.

    Returns [B, selected heads, selected rows, S].
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
    """Computes statistics of the attention weights, without materialising them.

    Arguments are those of regard.weights; top is the number of keys to return for each query.

    Returns a dict:
      top_keys: int32 [B, H, T, top], the keys with the largest weights, in descending order
        (the first is an alignment), -1 where there are fewer; of equal ones the lowest first.
      top_weights: [B, H, T, top], their weights.
      entropy: [B, H, T], -sum p ln p.
      column_mass: [B, H, S], the sum of the weights of each key over the queries.
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
    """Hard attention to one key per query: normalize is "hard", "gumbel" or "reinforce".

    Returns (out [B, H, T, E], index int32 [B, H, T], log_prob [B, H, T]): the value of the chosen
    key, its index, and its log-probability under the softmax. A query without allowed keys gets
    zeros, -1 and 0.
    """
    spec = (score, mask, bias, normalize, scale, params, dropout, seed, positions)
    return _regard.choose(q, k, v, spec)


def _document(function) -> None:
    """Inserts the names of all variants into a docstring."""
    if function.__doc__ is None:  # python -OO
        return
    names = {"{score}": [], "{mask}": [], "{bias}": [], "{normalize}": []}
    params = []
    for row in _regard.variants():
        if row["usage"] == "in Rust only":
            continue
        names["{%s}" % row["kind"]].append(row["name"])
        if row["kind"] == "score" and row["params"]:
            shapes = "; ".join(f"{name} {shape}" for name, shape in row["params"].items())
            params += textwrap.wrap(f"{row['name']}: {shapes}", 96, initial_indent=" " * 8,
                                    subsequent_indent=" " * 10)
    lines = []
    for line in function.__doc__.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        filled = line
        for mark, listed in names.items():
            filled = filled.replace(mark, ", ".join(listed))
        lines += [line] if filled == line else textwrap.wrap(
            filled.strip(), 96, initial_indent=indent, subsequent_indent=" " * 8
        )
        if "{params}" in line:
            lines[-1:] = [line.replace(" {params}", ""), *params]
    function.__doc__ = "\n".join(lines)


_document(attend)
