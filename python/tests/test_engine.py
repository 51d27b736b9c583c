"""Every score, mask, bias and normaliser against its formula in numpy."""

import numpy as np
import pytest
import reference
import regard

B, H, HK, T, S, D = 2, 4, 2, 5, 9, 8
P = np.arange(T)[:, None] + S - T  # where queries stand
J = np.arange(S)


def close(got, want, tolerance=2e-5):
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, atol=tolerance, rtol=tolerance)


def check_gradients(make, arrays, run, truth, names, tolerance=3e-3):
    """The gradients of sum(out * dout) along random directions, by finite differences in f64."""
    out, _ = run(arrays, None)
    dout = make(*out.shape)
    _, grads = run(arrays, dout)
    for position, name in enumerate(names):
        x = np.asarray(arrays[position], np.float32)
        assert grads[name].shape == x.shape and grads[name].dtype == np.float32
        along = make(*x.shape)

        def loss(value):
            changed = list(arrays)
            changed[position] = value
            return (truth(changed) * dout).sum()

        want = reference.slope(loss, x, along.astype(np.float64))
        got = (grads[name] * along).sum()
        assert abs(got - want) <= tolerance * (1 + abs(want)), name


@pytest.mark.parametrize("score", reference.SCORES)
def test_scores(make, score):
    q, k, v = make.qkv()
    params = make.params(score)
    want, weights = reference.attend(q, k, v, score=score, params=params)
    close(regard.attend(q, k, v, score=score, params=params), want)
    close(regard.weights(q, k, v, score=score, params=params), weights)
    if score in ("boxcar", "epanechnikov"):
        return  # kinks
    names = list(params)

    def run(arrays, dout):
        given = dict(zip(names, arrays[3:]))
        dout = np.zeros((B, H, T, D), np.float32) if dout is None else dout
        return regard.attend_vjp(*arrays[:3], dout, score=score, params=given)

    def truth(arrays):
        given = dict(zip(names, arrays[3:]))
        return reference.attend(*arrays[:3], score=score, params=given)[0]

    # The parameter v of the additive scores shares its name with the values.
    keys = ["v_1" if name == "v" else name for name in names]
    arrays = [q, k, v, *params.values()]
    check_gradients(make, arrays, run, truth, ["q", "k", "v", *keys])


@pytest.mark.parametrize("normalize", reference.NORMALIZERS)
def test_normalizers(make, normalize):
    q, k, v = make.qkv()
    mask, allowed = regard.causal() & regard.window(2, 0), (J <= P) & (J >= P - 2)
    want, weights = reference.attend(q, k, v, normalize=normalize, allowed=allowed)
    close(regard.attend(q, k, v, normalize=normalize, mask=mask), want)
    close(regard.weights(q, k, normalize=normalize, mask=mask), weights)
    if normalize == "hard":
        return  # its gradient is that of another function

    def run(arrays, dout):
        dout = np.zeros((B, H, T, D), np.float32) if dout is None else dout
        return regard.attend_vjp(*arrays, dout, normalize=normalize, mask=mask)

    def truth(arrays):
        return reference.attend(*arrays, normalize=normalize, allowed=allowed)[0]

    check_gradients(make, [q, k, v], run, truth, ["q", "k", "v"])


def test_masks(make):
    q, k, v = make.qkv()
    rng = np.random.default_rng(1)
    lens, per_query = np.array([3, 9]), rng.integers(0, S + 1, (B, T))
    centres = rng.uniform(0, S, (B, T)).astype(np.float32)
    ids = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    order = rng.permutation(S)
    rank = np.argsort(order)
    cells = rng.random((T, S)) < 0.5
    per_head = rng.random((B, H, T, S)) < 0.5
    graph = [np.flatnonzero(row) for row in cells]
    indptr = np.cumsum([0] + [len(row) for row in graph])
    causal, window = J <= P, (J >= P - 3) & (J <= P + 1)
    rows = [
        (regard.full(), np.ones((T, S), bool)),
        (regard.causal(), causal),
        (regard.lengths(lens), (J < lens[:, None])[:, None, None]),
        (regard.lengths(per_query), (J < per_query[..., None])[:, None]),
        (regard.window(3, 1), window),
        (regard.expanded(2, 1, 2), ((J - P) % 2 == 0) & (J >= P - 4) & (J <= P + 2)),
        (regard.around(centres, 2), (abs(J - centres[..., None]) <= 2)[:, None]),
        (regard.global_tokens([0, 6]), np.isin(J, [0, 6]) | np.isin(P, [0, 6])),
        (regard.prefix(6), (J < 6) | causal),
        (regard.segments(ids), ids[J] == ids[P]),
        (regard.segments(np.stack([ids, ids])), ids[J] == ids[P]),
        (regard.permutation(order), rank[J] <= rank[P]),
        (regard.permutation(order, strict=True), rank[J] < rank[P]),
        (regard.edges(indptr, np.concatenate(graph)), cells),
        (regard.dense(cells), cells),
        (regard.dense(per_head), per_head),
        (regard.causal() & regard.lengths(lens), causal & (J < lens[:, None])[:, None, None]),
        (regard.window(3, 1) | regard.global_tokens([8]), window | (J == 8) | (P == 8)),
        (~regard.causal(), ~causal),
        (~(regard.dense(cells) | regard.causal()), ~(cells | causal)),
    ]
    dout = make(B, H, T, D)
    for mask, allowed in rows:
        want, weights = reference.attend(q, k, v, allowed=allowed)
        close(regard.attend(q, k, v, mask=mask), want)
        close(regard.weights(q, k, mask=mask), weights)
        # The same cells one by one give the same gradients.
        allowed = np.ascontiguousarray(np.broadcast_to(allowed, (B, H, T, S)))
        _, one = regard.attend_vjp(q, k, v, dout, mask=mask)
        _, two = regard.attend_vjp(q, k, v, dout, mask=regard.dense(allowed))
        for name in ("q", "k", "v"):
            close(one[name], two[name])


def test_biases(make):
    q, k, v = make.qkv()
    rng = np.random.default_rng(2)
    cells = rng.random((T, S)) < 0.6
    indptr = np.cumsum([0, *cells.sum(1)])
    indices = np.concatenate([np.flatnonzero(row) for row in cells])
    centres = rng.uniform(0, S, (B, T)).astype(np.float32)
    edge_of = np.full((T, S), -1)
    edge_of[cells] = np.arange(cells.sum())
    clipped = np.clip(J - P, -3, 3) + 3
    rows = [
        (lambda x: x, [("bias", make(T, S))], lambda x: x),
        (lambda x: x, [("bias", make(1, H, T, S))], lambda x: x),
        (lambda x: x, [("bias", make(B, 1, T, S))], lambda x: x),
        (lambda x: x, [("bias", make(B, H, T, S))], lambda x: x),
        (
            regard.alibi,
            [("slopes", regard.alibi_slopes(H))],
            lambda x: -x[:, None, None] * abs(P - J),
        ),
        (regard.table, [("table", make(H, 7))], lambda x: x[:, clipped]),
        (
            lambda x: regard.edge_bias(indptr, indices, x),
            [("values", make(len(indices), H))],
            lambda x: np.where(cells, np.moveaxis(x[edge_of], -1, 0), 0),
        ),
        (
            regard.gaussian_bias,
            [("centres", centres), ("sigma", np.float32(2.5))],
            lambda c, sigma: -(((J - c[..., None]) ** 2) / (2 * sigma**2))[:, None],
        ),
        (
            lambda a, b: [a, regard.alibi(b)],
            [("bias", make(T, S)), ("slopes", regard.alibi_slopes(H))],
            lambda a, b: a - b[:, None, None] * abs(P - J),
        ),
        (
            lambda a, b: [a, b],
            [("bias", make(T, S)), ("bias_1", make(T, S))],
            lambda a, b: a + b,
        ),
    ]
    for build, given, formula in rows:
        names, arrays = [name for name, _ in given], [x for _, x in given]

        def run(arrays, dout):
            dout = np.zeros((B, H, T, D), np.float32) if dout is None else dout
            arrays = [np.asarray(x, np.float32) for x in arrays]
            return regard.attend_vjp(*arrays[:3], dout, bias=build(*arrays[3:]))

        def truth(arrays):
            return reference.attend(*arrays[:3], bias=formula(*arrays[3:]))[0]

        close(run([q, k, v, *arrays], None)[0], truth([q, k, v, *arrays]))
        check_gradients(make, [q, k, v, *arrays], run, truth, ["q", "k", "v", *names])


def test_gaussian_after_the_normalizer(make):
    q, k, v = make.qkv()
    centres = np.random.default_rng(3).uniform(0, S, (B, T)).astype(np.float32)
    factor = np.exp(-((J - centres[..., None].astype(np.float64)) ** 2) / (2 * 1.5**2))[:, None]
    _, p = reference.attend(q, k, v)
    want = (p * factor) @ np.repeat(v, H // HK, 1)
    bias = regard.gaussian_bias(centres, 1.5, after=True)
    close(regard.attend(q, k, v, bias=bias), want)
    close(regard.weights(q, k, bias=bias), p * factor)


def test_relative_with_segments(make):
    q, k, v = make.qkv(hk=H)
    ids = np.array([[0] * 5 + [1] * 4, [0] * 7 + [1] * 2])
    params = make.params("relative")
    params.update(segment=make(H, 2, D), x=make(H, D))
    differ = (ids[:, None, :] != ids[:, S - T :, None]).astype(int)
    terms = np.einsum("bhid,hgd->bhig", q + params["x"][:, None], params["segment"])
    index = np.broadcast_to(differ[:, None], (B, H, T, S))
    extra = np.take_along_axis(terms, index, -1) / np.sqrt(D)
    want, _ = reference.attend(q, k, v, score="relative", params=params, bias=extra)
    score = regard.relative(segments=ids)
    close(regard.attend(q, k, v, score=score, params=params), want)
    _, grads = regard.attend_vjp(q, k, v, make(B, H, T, D), score=score, params=params)
    assert set(grads) == {"q", "k", "v", "r", "u", "w", "segment", "x"}


def test_scale_and_positions(make):
    q, k, v = make.qkv()
    close(regard.attend(q, k, v, scale=0.5), reference.attend(q * 0.5 * np.sqrt(D), k, v)[0])
    offsets = np.array([0, 3], np.int32)
    seen = (J <= np.arange(T)[:, None] + offsets[:, None, None])[:, None]
    got = regard.attend(q, k, v, mask=regard.causal(), positions=offsets)
    close(got, reference.attend(q, k, v, allowed=seen)[0])
    centres = np.random.default_rng(4).uniform(0, S, (B, T)).astype(np.float32)
    near = (abs(J - centres[..., None]) <= 2)[:, None]
    got = regard.attend(q, k, v, mask=regard.window(2, 2), positions=centres)
    close(got, reference.attend(q, k, v, allowed=near)[0])


def test_dropout_is_replayed(make):
    q, k, v = make.qkv()
    given = dict(dropout=0.5, seed=7)
    p = regard.weights(q, k, **given)
    whole = regard.weights(q, k)
    kept = p != 0
    assert 0.3 < kept.mean() < 0.7
    close(p, whole * kept * 2)
    close(regard.attend(q, k, v, **given), p @ np.repeat(v, H // HK, 1))
    assert (regard.weights(q, k, dropout=0.5, seed=8) != p).any()
    dout = make(B, H, T, D)
    _, grads = regard.attend_vjp(q, k, v, dout, **given)
    dv = np.einsum("bhij,bhid->bhjd", p, dout).reshape(B, HK, H // HK, S, D).sum(2)
    close(grads["v"], dv)


def test_choices(make):
    q, k, v = make.qkv(hk=H)
    _, p = reference.attend(q, k, v)
    for normalize in ("hard", "gumbel", regard.gumbel(0.5, seed=3), regard.reinforce(seed=3)):
        out, index, log_prob = regard.choose(q, k, v, normalize=normalize)
        close(out, np.take_along_axis(v, index[..., None], 2))
        chosen = np.take_along_axis(p, index[..., None], -1)[..., 0]
        if normalize == "hard":
            assert (index == p.argmax(-1)).all()
        if not isinstance(normalize, str) and "reinforce" in repr(normalize):
            close(log_prob, np.log(chosen), 1e-4)
    out, index, log_prob = regard.choose(q, k, v, mask=~regard.full())
    assert (index == -1).all() and (log_prob == 0).all() and (out == 0).all()
    # Scores learn through the log-probability only: d log p[j] = one_hot - p.
    d = make(B, H, T)
    choice = regard.reinforce(seed=3)
    _, index, _ = regard.choose(q, k, v, normalize=choice)
    _, grads = regard.attend_vjp(q, k, v, None, normalize=choice, dlog_prob=d)
    ds = (np.eye(S)[index] - p) * d[..., None] / np.sqrt(D)
    close(grads["q"], ds @ k)
    close(grads["k"], np.swapaxes(ds, -1, -2) @ q)
    assert (grads["v"] == 0).all()


def test_weights_are_an_output(make):
    q, k, v = make.qkv(hk=H)
    out, dweights = regard.attend(q, k, v), make(B, H, T, S)
    _, p = reference.attend(q, k, v)
    _, grads = regard.attend_vjp(q, k, v, np.zeros_like(out), dweights=dweights)
    ds = p * (dweights - (p * dweights).sum(-1, keepdims=True)) / np.sqrt(D)
    close(grads["q"], ds @ k)
    close(regard.attend_vjp(q, k, v, None, dweights=dweights)[1]["q"], ds @ k)


def test_weights_of_some_heads_and_rows(make):
    q, k, _ = make.qkv()
    every = regard.weights(q, k, mask=regard.causal())
    some = regard.weights(q, k, mask=regard.causal(), heads=[2, 0], rows=np.array([4, 1, 1]))
    assert (some == every[:, [2, 0]][:, :, [4, 1, 1]]).all()


def test_summaries(make):
    q, k, _ = make.qkv()
    p = regard.weights(q, k, mask=regard.causal())
    found = regard.summarize(q, k, mask=regard.causal(), top=3)
    assert (found["top_keys"] == np.argsort(-p, -1, kind="stable")[..., :3]).all()
    close(found["top_weights"], -np.sort(-p, -1)[..., :3])
    close(found["entropy"], -(p * np.log(np.where(p > 0, p, 1))).sum(-1))
    close(found["column_mass"], p.sum(2))


def test_a_query_without_keys_gets_zeros(make):
    q, k, v = make.qkv()
    mask, dout = regard.lengths([0, S]), make(B, H, T, D)
    for normalize in reference.NORMALIZERS:
        out, grads = regard.attend_vjp(q, k, v, dout, mask=mask, normalize=normalize)
        assert (out[0] == 0).all() and np.isfinite(out).all()
        for name in ("q", "k", "v"):
            assert (grads[name][0] == 0).all() and np.isfinite(grads[name]).all()


def test_variants_lists_everything():
    rows = regard.variants()
    names = {kind: [r["name"] for r in rows if r["kind"] == kind] for kind in
             ("score", "mask", "bias", "normalize")}
    assert set(reference.SCORES) <= set(names["score"])
    assert set(names["mask"]) == {
        "full", "causal", "lengths", "window", "expanded", "around", "global_tokens", "prefix",
        "segments", "permutation", "edges", "dense",
    }
    assert set(reference.NORMALIZERS) | {"gumbel", "reinforce"} == set(names["normalize"])
    assert {"alibi", "table", "dense", "edge", "gaussian", "gaussian_after"} == set(names["bias"])
    assert all(r["formula"] and r["paper"] and r["usage"] for r in rows)
    assert all(hasattr(regard, name) for name in names["mask"])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("score", ["edge", "gatv2"])
def test_features_of_edges(make, score, masked):
    """Inside of the nonlinearity; pairs that are no edge have none."""
    q, k, v = make.qkv()
    cells = np.random.default_rng(2).random((T, S)) < 0.4
    targets, sources = np.nonzero(cells)
    indptr = np.concatenate([[0], np.cumsum(cells.sum(1))])
    shape = (H, len(sources)) if score == "edge" else (H, len(sources), D)
    params = {**make.params(score), "edge": make(*shape)}
    names = list(params)
    settings = {
        "score": getattr(regard, score)(0.3, indptr, sources),
        "mask": regard.edges(indptr, sources) if masked else None,
    }

    def truth(arrays):
        q, k, v, *rest = (np.asarray(x, np.float64) for x in arrays)
        k, v = np.repeat(k, H // HK, 1), np.repeat(v, H // HK, 1)
        given = dict(zip(names, rest))
        dense = np.zeros((H, T, S, *shape[2:]))
        dense[:, targets, sources] = given["edge"]
        if score == "gatv2":
            s = reference.pairs(q, k, given["v"], lambda x: reference.leaky(x, 0.3), dense)
        else:
            s = reference.leaky(
                np.einsum("bhid,hd->bhi", q, given["a_q"])[..., None]
                + np.einsum("bhjd,hd->bhj", k, given["a_k"])[:, :, None]
                + dense,
                0.3,
            )
        return reference.softmax(np.where(cells, s, -np.inf) if masked else s) @ v

    def run(arrays, dout):
        given = dict(zip(names, arrays[3:]))
        dout = np.zeros((B, H, T, D), np.float32) if dout is None else dout
        return regard.attend_vjp(*arrays[:3], dout, params=given, **settings)

    arrays = [q, k, v, *params.values()]
    close(regard.attend(q, k, v, params=params, **settings), truth(arrays))
    keys = ["v_1" if name == "v" else name for name in names]
    check_gradients(make, arrays, run, truth, ["q", "k", "v", *keys])


def catalogued(kind):
    """Every row of a kind that can be written in Python."""
    return [row["name"] for row in regard.variants()
            if row["kind"] == kind and row["usage"] != "in Rust only"]


def check_by_differences(make, arrays, run, names):
    """Gradients against differences of the float32 output itself: for what has no formula here."""
    dout = make(B, H, T, D)
    _, grads = run(arrays, dout)
    for position, name in enumerate(names):
        x = np.asarray(arrays[position], np.float32)
        assert grads[name].shape == x.shape and np.isfinite(grads[name]).all(), name
        along = make(*x.shape)

        def loss(step):
            changed = list(arrays)
            changed[position] = (x + step * along).astype(np.float32)
            return (run(changed, dout)[0].astype(np.float64) * dout).sum()

        step = np.float32(2e-3)
        want = (loss(step) - loss(-step)) / (2 * step)
        got = (grads[name].astype(np.float64) * along).sum()
        assert abs(got - want) <= 2e-2 * (1 + abs(want)), (name, got, want)


@pytest.mark.parametrize("score", [s for s in catalogued("score") if s not in reference.SCORES])
def test_scores_without_a_formula_here(make, score):
    q, k, v = make.qkv()
    params = make.params(score)
    names = list(params)
    p = regard.weights(q, k, v, score=score, params=params)
    close(p.sum(-1), np.ones((B, H, T)))
    close(regard.attend(q, k, v, score=regard.score(score), params=params),
          p @ np.repeat(v, H // HK, 1))

    def run(arrays, dout):
        return regard.attend_vjp(*arrays[:3], dout, score=score, params=dict(zip(names, arrays[3:])))

    keys = [f"{name}_1" if name in "qkv" else name for name in names]
    check_by_differences(make, [q, k, v, *params.values()], run, ["q", "k", "v", *keys])


def test_every_row_can_be_made(make):
    """Scores and normalisers by name and as objects; settings that a row has not are refused."""
    q, k, v = make.qkv()
    for score in catalogued("score"):
        params = make.params(score)
        one = regard.attend(q, k, v, score=score, params=params)
        assert (one == regard.attend(q, k, v, score=regard.score(score), params=params)).all()
        with pytest.raises(ValueError, match="colour"):
            regard.score(score, colour=1.0)
    for normalize in catalogued("normalize"):
        one = regard.attend(q, k, v, normalize=normalize)
        assert (one == regard.attend(q, k, v, normalize=regard.normalizer(normalize))).all()
        with pytest.raises(ValueError, match="colour"):
            regard.normalizer(normalize, colour=1.0)
    for bias in catalogued("bias"):
        with pytest.raises(ValueError, match="colour"):
            regard.bias(bias, colour=1.0)


def test_docstrings_list_the_catalogue():
    for kind in ("score", "bias", "normalize"):
        for name in catalogued(kind):
            assert name in regard.attend.__doc__, name
