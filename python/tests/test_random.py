"""Random calls of every function against float64, shapes with nothing in them included.

The same calls in every run. REGARD_RANDOM_SECONDS (20 by default) says how long to go on;
REGARD_RANDOM_SEED where to begin: what fails is named by its seed and can be run alone."""

import os
import time

import numpy as np
import reference
import regard

SECONDS = float(os.environ.get("REGARD_RANDOM_SECONDS", "20"))
FIRST = int(os.environ.get("REGARD_RANDOM_SEED", "0"))

SCORES = list(reference.SCORES)
NORMALIZERS = [name for name in reference.NORMALIZERS if name != "hard"]
SMOOTH = ("softmax", "softmax1", "sigmoid")


class Problem:
    """Arrays, words and what they should give."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.b, self.hk, group = rng.integers(0, 4), rng.integers(1, 4), rng.integers(1, 4)
        self.h = self.hk * group
        self.t, self.s = (int(rng.choice([0, 1, 2, 5, 17, 64, 65, 130])) for _ in range(2))
        self.d = int(rng.choice([1, 3, 4, 8, 17]))
        self.score = SCORES[rng.integers(len(SCORES))]
        self.normalize = NORMALIZERS[rng.integers(len(NORMALIZERS))]
        if self.score == "relative":  # its queries stand at keys
            self.t = min(self.t, self.s)
        self.e = self.d if self.score == "keyvalue" else int(rng.choice([1, 2, 8, 19]))
        offsets = np.full(self.b, self.s - self.t)
        self.positions = None
        if self.score != "relative" and rng.random() < 0.3:
            self.positions = offsets = rng.integers(-9, self.s + 9, self.b)
        # Where queries stand, [B, 1, T, 1].
        self.position = np.arange(self.t)[:, None] + offsets[:, None, None, None]
        self.key = np.arange(self.s)
        self.q = self.array(self.b, self.h, self.t, self.d)
        self.k = self.array(self.b, self.hk, self.s, self.d)
        self.v = self.array(self.b, self.hk, self.s, self.e)
        self.params = self.score_params()
        self.mask, self.allowed = self.some_mask(2)
        self.bias, self.added, self.bias_shapes = self.some_biases()

    def array(self, *shape):
        """Of any memory layout."""
        rng, axes = self.rng, np.arange(len(shape))
        kind = rng.integers(6)
        if kind == 0:
            rng.shuffle(axes)
        x = rng.standard_normal([shape[axis] for axis in axes]).astype(np.float32)
        x = x.transpose(np.argsort(axes))
        if kind == 1:  # backwards
            x = x[tuple(slice(None, None, -1 if rng.random() < 0.5 else 1) for _ in shape)]
        if kind == 2:  # steps over other numbers
            wide = np.full([2 * n for n in shape], np.nan, np.float32)
            wide[tuple(slice(1, None, 2) for _ in shape)] = x
            x = wide[tuple(slice(1, None, 2) for _ in shape)]
        if kind == 3 and x.size:  # the same numbers again and again
            axis = int(rng.integers(len(shape)))
            x = np.broadcast_to(x.take([0], axis), shape)
        assert x.shape == shape
        return x

    def score_params(self):
        h, d, t, s = self.h, self.d, self.t, self.s
        shapes = {
            "additive": {"v": (h, d)},
            "gatv2": {"v": (h, d)},
            "general": {"w": (h, d, d)},
            "relative": {"r": (h, s + t, d), "u": (h, d), "w": (h, d)},
            "edge": {"a_q": (h, d), "a_k": (h, d)},
        }
        given = {name: self.array(*shape) for name, shape in shapes.get(self.score, {}).items()}
        if self.score in ("gaussian", "boxcar", "epanechnikov"):
            given["sigma"] = 2.5 + 2 * np.sqrt(d)
        if self.score == "keyvalue":
            given.update(a=0.7, b=np.array(-0.4, np.float32))
        return given

    def some_mask(self, depth):
        """A mask, and which cells it allows."""
        rng, p, j, b, t, s = self.rng, self.position, self.key, self.b, self.t, self.s
        if depth and rng.random() < 0.4:
            (x, x_allows), (y, y_allows) = self.some_mask(depth - 1), self.some_mask(depth - 1)
            return [
                (x & y, x_allows & y_allows), (x | y, x_allows | y_allows), (~x, ~x_allows),
            ][rng.integers(3)]
        cells = rng.random((t, s)) < rng.choice([0.0, 0.1, 0.5, 1.0])
        graph = [np.flatnonzero(row) for row in cells]
        kind = rng.integers(11)
        if kind == 0:
            return regard.full(), np.ones((t, s), bool)
        if kind == 1:
            return regard.causal(), j <= p
        if kind == 2:
            left, right = (int(x) for x in rng.choice([0, 1, 7, 1 << 40, (1 << 63) - 1], 2))
            return regard.window(left, right), (p - j <= left) & (j - p <= right)
        if kind == 3:
            n = rng.integers(0, s + 1, b)
            return regard.lengths(n), (j < n[:, None])[:, None, None] & np.ones((t, 1), bool)
        if kind == 4:
            n = rng.integers(0, s + 1, (b, t))
            return regard.lengths(n), (j < n[..., None])[:, None]
        if kind == 5:
            n = int(rng.integers(0, s + 1))
            return regard.prefix(n), (j < n) | (j <= p)
        if kind == 6:
            some = rng.choice(s, int(rng.integers(0, min(s, 3) + 1)), replace=False)
            return regard.global_tokens(some), np.isin(j, some) | np.isin(p, some)
        if kind == 7:
            stride = int(rng.choice([1, 2, 5, (1 << 63) - 1]))
            left, right = (int(x) for x in rng.choice([0, 1, 3, (1 << 63) - 1], 2))
            far = (j - p).astype(object)
            seen = (far % stride == 0) & (far >= -left * stride) & (far <= right * stride)
            return regard.expanded(left, right, stride), seen.astype(bool)
        if kind == 8:
            indptr = np.cumsum([0] + [len(row) for row in graph])
            indices = np.concatenate(graph) if graph else np.zeros(0, int)
            return regard.edges(indptr, indices), cells
        if kind == 9:
            return regard.dense(cells), cells
        cells = rng.random((b, self.h, t, s)) < 0.5
        return regard.dense(cells), cells

    def some_biases(self):
        rng, p, j, b, h, t, s = (
            self.rng, self.position, self.key, self.b, self.h, self.t, self.s,
        )
        biases, added, shapes = [], np.zeros((b, h, t, s)), []
        for kind in rng.integers(0, 5, rng.integers(0, 3)):
            if kind == 0:
                x = self.array(t, s)
                biases, added, shapes = biases + [x], added + x, shapes + [x.shape]
            if kind == 1:
                x = self.array(*[n if rng.random() < 0.5 else 1 for n in (b, h)], t, s)
                biases, added, shapes = biases + [x], added + x, shapes + [x.shape]
            if kind == 2:
                x = np.abs(self.array(h))
                added = added - x[:, None, None].astype(np.float64) * abs(p - j)
                biases, shapes = biases + [regard.alibi(x)], shapes + [x.shape]
            if kind == 3:
                x = self.array(h, 7)
                clipped = (np.clip(j - p, -3, 3) + 3)[:, 0]
                added = added + np.moveaxis(x[:, clipped], 0, 1)
                biases, shapes = biases + [regard.table(x)], shapes + [x.shape]
            if kind == 4:
                x = self.array(b, t)
                added = added - ((j - x[..., None].astype(np.float64)) ** 2 / 50)[:, None]
                biases = biases + [regard.gaussian_bias(x, 5.0)]
                shapes = shapes + [x.shape, ()]
        return biases, added, shapes

    def words(self, **changed):
        words = dict(score=self.score, mask=self.mask, bias=self.bias, normalize=self.normalize,
                     params=self.params, positions=self.positions)
        return {**words, **changed}

    def truth(self, normalize=None, **changed):
        """Output and weights in float64; nothing where there is no key."""
        x = {"q": self.q, "k": self.k, "v": self.v, **changed}
        if 0 in (self.b, self.t, self.s):
            p = np.zeros((self.b, self.h, self.t, self.s))
            return np.zeros((self.b, self.h, self.t, self.e)), p
        params = {name: x.get(f"params {name}", value) for name, value in self.params.items()}
        allowed = np.broadcast_to(self.allowed, (self.b, self.h, self.t, self.s))
        with np.errstate(over="ignore", invalid="ignore"):
            return reference.attend(x["q"], x["k"], x["v"], score=self.score, params=params,
                                    allowed=allowed, bias=self.added,
                                    normalize=normalize or self.normalize)


def close(got, want, tolerance=5e-5):
    assert got.shape == np.shape(want), (got.shape, np.shape(want))
    np.testing.assert_allclose(got, want, atol=tolerance, rtol=tolerance)


def check_weights(p, out, weights):
    got = regard.weights(p.q, p.k, p.v, **p.words())
    close(got, weights)
    heads = p.rng.integers(0, p.h, p.rng.integers(0, 4))
    rows = p.rng.integers(0, p.t, p.rng.integers(0, 4) if p.t else 0)
    some = regard.weights(p.q, p.k, p.v, heads=heads, rows=rows, **p.words())
    np.testing.assert_array_equal(some, got[:, heads][:, :, rows])
    top = int(p.rng.integers(0, min(p.s, 3) + 1))
    found = regard.summarize(p.q, p.k, p.v, top=top, **p.words())
    close(found["column_mass"], weights.sum(2), 1e-3)
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)
    close(found["entropy"], entropy, 1e-3)
    close(found["top_weights"], -np.sort(-weights, -1)[..., :top] if p.s else
          np.zeros((p.b, p.h, p.t, top)))
    assert found["top_keys"].shape == (p.b, p.h, p.t, top)


def check_choices(p):
    out, index, log_prob = regard.choose(p.q, p.k, p.v, **p.words(normalize="hard"))
    assert index.shape == log_prob.shape == (p.b, p.h, p.t)
    _, weights = p.truth(normalize="softmax")
    if p.s and weights.size:
        ordered = np.sort(weights, -1)
        clear = ordered[..., -1] > 1.001 * (ordered[..., -2] if p.s > 1 else 0)
        want = np.where(weights.max(-1) > 0, weights.argmax(-1), -1)
        np.testing.assert_array_equal(np.where(clear, index, 0), np.where(clear, want, 0))
        values = np.repeat(p.v, p.h // p.hk, 1)
        picked = np.take_along_axis(values, np.maximum(index, 0)[..., None], 2)
        np.testing.assert_array_equal(out, np.where(index[..., None] < 0, 0, picked))
    else:
        assert (index == -1).all() and not out.any() and not log_prob.any()


def check_gradients(p, weights):
    dout = p.array(p.b, p.h, p.t, p.e)
    dweights = p.array(p.b, p.h, p.t, p.s) if p.rng.random() < 0.3 else None
    out, grads = regard.attend_vjp(p.q, p.k, p.v, dout, dweights=dweights, **p.words())
    np.testing.assert_array_equal(out, regard.attend(p.q, p.k, p.v, **p.words()))
    names = [name for name in grads if name not in "qkv"]
    shapes = [np.shape(x) for x in p.params.values()] + p.bias_shapes
    assert [grads[name].shape for name in names] == shapes
    for name in "qk":
        assert grads[name].shape == getattr(p, name).shape
    assert all(np.isfinite(x).all() for x in grads.values())
    if p.score != "keyvalue":
        by_head = np.einsum("bhij,bhie->bhje", weights, dout.astype(np.float64))
        by_head = by_head.reshape(p.b, p.hk, p.h // p.hk, p.s, p.e)
        close(grads["v"], by_head.sum(2), 1e-3)
    if p.normalize not in SMOOTH or p.score in ("boxcar", "epanechnikov"):
        return
    arrays = {"q": p.q, "k": p.k, **{f"params {name}": x for name, x in p.params.items()}}
    for name, x in arrays.items():
        along = p.rng.standard_normal(np.shape(x))
        x = np.asarray(x, np.float64)

        def loss(value):
            out, weights = p.truth(**{name: value})
            return (out * dout).sum() + (0 if dweights is None else (weights * dweights).sum())

        want = reference.slope(loss, x, along)
        label = name.replace("params ", "")
        got = (grads["v_1" if name == "params v" else label] * along).sum()
        size = 1 + abs(want) + np.sqrt(dout.size)
        assert abs(got - want) <= 3e-3 * size, (name, got, want)


def check_products(rng):
    p = Problem(int(rng.integers(1 << 30)))
    m, k, n = (int(rng.choice([0, 1, 2, 15, 16, 17, 64, 400, 770])) for _ in range(3))
    a, b = p.array(m, k), p.array(k, n)
    close(regard.matmul(a, b), a.astype(np.float64) @ b, 1e-3)


def test_random_calls():
    until, seed = time.monotonic() + SECONDS, FIRST
    while seed == FIRST or time.monotonic() < until:
        try:
            p = Problem(seed)
            out, weights = p.truth()
            close(regard.attend(p.q, p.k, p.v, **p.words()), out)
            check_weights(p, out, weights)
            check_choices(p)
            check_gradients(p, weights)
            check_products(p.rng)
        except Exception as error:
            sizes = f"B {p.b}, H {p.h}, Hk {p.hk}, T {p.t}, S {p.s}, D {p.d}, E {p.e}"
            raise AssertionError(
                f"seed {seed}: {p.score}, {p.normalize}, {p.mask}, {sizes}: {error}"
            ) from error
        seed += 1
    assert seed - FIRST > 20, "too slow to have seen anything"
