"""What does not fit is named: the argument, what it got, what it needed."""

import numpy as np
import pytest
import regard


def check(error, words, call):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_types(make):
    q, k, v = make.qkv()
    rows = [
        (lambda: regard.attend(q.astype(np.float64), k, v),
         ["q is float64", "q.astype(numpy.float32)"]),
        (lambda: regard.attend(q, k.astype(np.float16), v), ["k is float16", "k.astype"]),
        (lambda: regard.attend(q, k, v.astype(">f4")), ["v is >f4", "v.astype"]),
        (lambda: regard.attend(q, k, v.tolist()), ["v is a list", "numpy.asarray(v"]),
        (lambda: regard.attend(q, None, v), ["k is a NoneType"]),
        (lambda: regard.attend(q, k, v, mask=np.ones((5, 9), bool)), ["mask", "regard.dense"]),
        (lambda: regard.attend(q, k, v, mask="causal"), ["mask", "str", "regard.Mask"]),
        (lambda: regard.attend(q, k, v, bias=np.zeros((5, 9))), ["bias is float64"]),
        (lambda: regard.attend(q, k, v, bias="alibi"), ["bias", "str"]),
        (lambda: regard.attend(q, k, v, score=3), ["score", "int"]),
        (lambda: regard.attend(q, k, v, normalize=None), ["normalize", "NoneType"]),
        (lambda: regard.lengths(np.array([1.0, 2.0])), ["lengths is float64", "integers"]),
        (lambda: regard.dense(np.ones((5, 9))), ["allowed is float64", "astype(bool)"]),
        (lambda: regard.causal() and regard.full(), ["& | ~"]),
        (lambda: regard.attend(q, k, v, score="gaussian", params={"sigma": "wide"}), ["sigma"]),
    ]
    for call, words in rows:
        check(TypeError, words, call)
    packed = np.zeros(3 * 4 * 5 * 8, np.dtype([("a", "i1"), ("x", "f4")]))["x"]
    check(TypeError, ["q is not aligned", "q.copy()"],
          lambda: regard.attend(packed.reshape(3, 4, 5, 8), k, v))


def test_shapes(make):
    q, k, v = make.qkv()  # B 2, H 4, Hk 2, T 5, S 9, D 8
    w = make(4, 8)
    r = regard
    rows = [
        (lambda: r.attend(q[0], k, v), ["q", "(4, 5, 8)", "[B,H,T,D]"]),
        (lambda: r.gatv2(0.2, [0, 1]), ["indptr, indices", "both or none"]),
        (lambda: r.attend(q, k, v, score=r.gatv2(0.2, [0, 1], [3]), params={"v": w, "edge": w}),
         ["params[\"edge\"]", "(4, 8)", "(4, 1, 8)"]),
        (lambda: r.attend(q, k, v, score=r.edge(0.2, [0, 1], [3]),
                          params={"a_q": w, "a_k": w, "edge": w[:, :1]}),
         ["score: edges", "indptr of 2", "T + 1 = 6"]),
        (lambda: r.attend(q[:, :3], k, v), ["k", "2", "3"]),
        (lambda: r.attend(q[:, :0], k, v), ["heads"]),
        (lambda: r.attend(q[:1], k, v), ["k", "batch 2", "1"]),
        (lambda: r.attend(q, k, v[:, :, :7]), ["v", "7", "9"]),
        (lambda: r.attend(q, k[..., :4], v), ["k", "4", "8"]),
        (lambda: r.attend(q[..., :0], k[..., :0], v), ["widths", "0"]),
        (lambda: r.attend_vjp(q, k, v, q[:, :, :4]), ["dout", "(2, 4, 4, 8)", "(2, 4, 5, 8)"]),
        (lambda: r.attend_vjp(q, k, v, None, dweights=q), ["dweights", "[B,H,T,S]"]),
        (lambda: r.attend_vjp(q, k, v, q, dlog_prob=q[..., 0]), ["dlog_prob"]),
        (lambda: r.attend_vjp(q, k, v, q, normalize="reinforce", dlog_prob=q), ["dlog_prob"]),
        (lambda: r.attend(q, k, v, bias=make(9, 5)), ["bias", "9", "5"]),
        (lambda: r.attend(q, k, v, bias=make(3, 1, 5, 9)), ["bias", "3"]),
        (lambda: r.attend(q, k, v, bias=make(4, 5, 9)), ["bias", "[T,S]"]),
        (lambda: r.attend(q, k, v, bias=r.alibi(make(3))), ["slopes", "(3,)", "(4,)"]),
        (lambda: r.table(make(4, 6)), ["table", "(4, 6)"]),
        (lambda: r.attend(q, k, v, score="additive"), ["additive", "'v'".replace("'", '"')]),
        (lambda: r.attend(q, k, v, score="additive", params={"v": w.T}), ["v", "(8, 4)"]),
        (lambda: r.attend(q, k, v, params={"v": w}), ["params", "dot"]),
        (lambda: r.attend(q, k, v, score="gaussian", params={"sigma": w}), ["sigma", "(4, 8)"]),
        (lambda: r.attend(q, k, v, score="gaussian", params={"sigma": 0.0}), ["sigma", "0"]),
        (lambda: r.attend(q, k, v[..., :4], score="keyvalue", params={"a": 1, "b": 1}),
         ["v", "E = 4"]),
        (lambda: r.weights(q, k, score="keyvalue", params={"a": 1, "b": 1}), ["v", "keyvalue"]),
        (lambda: r.attend(q, k, v, score="cosine"), ["score", "cosine", "dot, additive"]),
        (lambda: r.attend(q, k, v, score="score_mod"), ["score_mod"]),
        (lambda: r.attend(q, k, v, normalize="max"), ["normalize", "max", "softmax"]),
        (lambda: r.attend(q, k, v, scale=float("nan")), ["scale", "NaN"]),
        (lambda: r.attend(q, k, v, dropout=1.0), ["dropout", "1"]),
        (lambda: r.attend(q, k, v, dropout=-0.1), ["dropout", "-0.1"]),
        (lambda: r.attend(q, k, v, dropout=0.1, seed=-1), ["seed", "-1"]),
        (lambda: r.attend(q, k, v, positions=np.zeros(3, int)), ["positions", "(3,)", "(2,)"]),
        (lambda: r.attend(q, k, v, positions=make(2, 4)), ["positions", "(2, 4)", "(2, 5)"]),
        (lambda: r.attend(q, k, v, positions=np.array([0, 1 << 40])), ["positions"]),
        (lambda: r.weights(q, k, heads=[4]), ["heads", "4"]),
        (lambda: r.weights(q, k, rows=[-1]), ["rows", "-1"]),
        (lambda: r.summarize(q, k, top=10), ["top", "10", "9"]),
        (lambda: r.choose(q, k, v, normalize="softmax"), ["normalize"]),
        (lambda: r.gumbel(temperature=0), ["temperature"]),
        (lambda: r.set_threads(0), ["0", "1"]),
    ]
    for call, words in rows:
        check(ValueError, words, call)


def test_masks(make):
    q, k, v = make.qkv()  # B 2, H 4, T 5, S 9
    r = regard
    rows = [
        (lambda: r.lengths([1, 2, 3]), ["lengths", "(3,)", "(2,)"]),
        (lambda: r.lengths([1, 10]), ["lengths", "10", "9"]),
        (lambda: r.lengths([1, -1]), ["lengths", "-1"]),
        (lambda: r.lengths(np.zeros((5, 2), int)), ["lengths", "(5, 2)", "(2, 5)"]),
        (lambda: r.lengths(3), ["lengths"]),
        (lambda: r.window(-1, 0), ["left", "-1"]),
        (lambda: r.expanded(1, 1, 0), ["stride", "0"]),
        (lambda: r.around(make(5, 2), 1), ["centres", "(5, 2)", "(2, 5)"]),
        (lambda: r.around(np.full((2, 5), np.nan, np.float32), 1), ["centres", "NaN"]),
        (lambda: r.global_tokens([9]), ["global_tokens", "9"]),
        (lambda: r.global_tokens([-1]), ["indices", "-1"]),
        (lambda: r.prefix(10), ["prefix", "10", "9"]),
        (lambda: r.segments(np.zeros(18, int)), ["ids", "(18,)"]),
        (lambda: r.permutation(np.arange(10)), ["permutation", "10", "9"]),
        (lambda: r.permutation([0, 0, 1]), ["permutation"]),
        (lambda: r.edges([0, 1], [0]), ["edges", "indptr", "2", "6"]),
        (lambda: r.edges([0, 2, 2, 2, 2, 2], [1, 0]), ["edges", "row 0"]),
        (lambda: r.edges([0, 1, 1, 1, 1, 1], [9]), ["edges", "9"]),
        (lambda: r.edges([0, 1, 1, 1, 1, 3], [0]), ["edges", "indptr", "3"]),
        (lambda: r.dense(np.ones((9, 5), bool)), ["allowed", "(9, 5)", "(5, 9)"]),
        (lambda: r.dense(np.ones((1, 4, 5, 9), bool)), ["allowed", "(1, 4, 5, 9)"]),
        (lambda: r.causal() & r.lengths([1]), ["lengths"]),
        (lambda: ~r.dense(np.ones((9, 5), bool)), ["allowed"]),
    ]
    for build, words in rows:
        check(ValueError, words, lambda: regard.attend(q, k, v, mask=build()))
    values = make(1, 4)
    bad = regard.edge_bias([0, 1], [0], values)
    check(ValueError, ["bias", "indptr"], lambda: regard.attend(q, k, v, bias=bad))
    segments = regard.relative(segments=np.zeros((2, 5), int))
    params = dict(make.params("relative"), segment=make(4, 2, 8), x=make(4, 8))
    check(ValueError, ["segments", "(2, 5)", "(2, 9)"],
          lambda: regard.attend(q, k, v, score=segments, params=params))
