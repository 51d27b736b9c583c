"""The slow truth: attention in float64, one readable line for each formula."""

import numpy as np


def leaky(x, slope=0.2):
    return np.where(x < 0, slope * x, x)


def softmax(s):
    m = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(m), m, 0))
    total = e.sum(-1, keepdims=True)
    return np.where(total > 0, e / np.where(total > 0, total, 1), 0)


def softmax1(s):
    m = np.maximum(s.max(-1, keepdims=True), 0)
    e = np.exp(s - m)
    return e / (e.sum(-1, keepdims=True) + np.exp(-m))


def by_threshold(s, power):
    """max(s - tau, 0)**power that sums to 1, tau by bisection."""
    top = s.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    low, high = top - 1, top
    for _ in range(100):
        tau = (low + high) / 2
        over = (np.maximum(s - tau, 0) ** power).sum(-1, keepdims=True) > 1
        low, high = np.where(over, tau, low), np.where(over, high, tau)
    return np.maximum(s - tau, 0) ** power


def hard(s):
    one = np.zeros_like(s)
    np.put_along_axis(one, s.argmax(-1)[..., None], 1, -1)
    return np.where(np.isfinite(s), one, 0)


NORMALIZERS = {
    "softmax": softmax,
    "softmax1": softmax1,
    "sparsemax": lambda s: by_threshold(s, 1),
    "entmax15": lambda s: by_threshold(s / 2, 2),
    "sigmoid": lambda s: 1 / (1 + np.exp(-s)),
    "uniform": lambda s: np.isfinite(s) / np.maximum(np.isfinite(s).sum(-1, keepdims=True), 1),
    "hard": hard,
}


def log_kernel(kernel):
    def score(q, k, v, p):
        u2 = ((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1) / p["sigma"] ** 2
        with np.errstate(divide="ignore"):
            return np.log(kernel(u2))

    return score


def pairs(q, k, weight, f, edge=0.0):
    """sum_d weight[h, d] f(q[i, d] + k[j, d] + edge[h, i, j, d])"""
    sums = f(q[:, :, :, None] + k[:, :, None] + edge)
    return np.einsum("bhijd,hd->bhij", sums, weight)


def dot(q, k):
    return np.einsum("bhid,bhjd->bhij", q, k)


def relative(q, k, v, p):
    t, s, d = q.shape[2], k.shape[2], q.shape[3]
    distance = np.arange(t)[:, None] + s - t - np.arange(s)
    content = dot(q + p["u"][:, None], k)
    r = p["r"][:, s - distance]
    position = np.einsum("bhid,hijd->bhij", q + p["w"][:, None], r)
    return (content + position) / np.sqrt(d)


SCORES = {
    "dot": lambda q, k, v, p: dot(q, k) / np.sqrt(q.shape[-1]),
    "additive": lambda q, k, v, p: pairs(q, k, p["v"], np.tanh),
    "general": lambda q, k, v, p: np.einsum("bhid,hde,bhje->bhij", q, p["w"], k),
    "gaussian": log_kernel(lambda u2: np.exp(-u2 / 2)),
    "boxcar": log_kernel(lambda u2: (u2 <= 1).astype(float)),
    "epanechnikov": log_kernel(lambda u2: np.maximum(1 - u2, 0)),
    "keyvalue": lambda q, k, v, p: (p["a"] * dot(q, k) + p["b"] * dot(q, v))
    / np.sqrt(q.shape[-1]),
    "relative": relative,
    "edge": lambda q, k, v, p: leaky(
        np.einsum("bhid,hd->bhi", q, p["a_q"])[..., None]
        + np.einsum("bhjd,hd->bhj", k, p["a_k"])[:, :, None]
    ),
    "gatv2": lambda q, k, v, p: pairs(q, k, p["v"], leaky),
}


def attend(q, k, v, *, score="dot", allowed=None, bias=0.0, normalize="softmax", params=None):
    """Returns out and weights, in float64. `allowed` is broadcast over [B, H, T, S]."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    params = {name: np.asarray(x, np.float64) for name, x in (params or {}).items()}
    s = SCORES[score](q, k, v, params) + bias
    if allowed is not None:
        s = np.where(allowed, s, -np.inf)
    p = NORMALIZERS[normalize](s)
    return p @ v, p


def slope(f, x, along, step=1e-6):
    """The derivative of f at x in the direction `along`, in float64."""
    x = np.asarray(x, np.float64)
    return (f(x + step * along) - f(x - step * along)) / (2 * step)
