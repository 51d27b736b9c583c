"""The wheel against tensors that PyTorch made (fixtures/make/attention.py)."""

import json
import pathlib

import numpy as np
import pytest
import regard

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "attention"


def load(name):
    case = json.loads((FIXTURES / f"{name}.json").read_text())
    return {key: np.array(x["data"], np.float32).reshape(x["shape"]) for key, x in case.items()}


def close(got, want):
    np.testing.assert_allclose(got, want, atol=3e-5, rtol=3e-5)


@pytest.mark.parametrize("name", sorted(p.stem for p in FIXTURES.glob("sdpa_*.json")))
def test_scaled_dot_product_attention(name):
    case = load(name)
    mask = None
    if "mask" in case:
        mask = regard.dense(case["mask"].astype(bool))
    elif "causal" in case:
        mask = regard.causal()
    out, grads = regard.attend_vjp(case["q"], case["k"], case["v"], case["dout"], mask=mask)
    close(out, case["out"])
    for key in ("q", "k", "v"):
        close(grads[key], case["d" + key])


@pytest.mark.parametrize("name", ["multi_head_self", "multi_head_cross"])
def test_multi_head_attention(name):
    """The projections here, in numpy; attention by the wheel, on views of them."""
    case = load(name)
    x, y, h = case["x"], case["y"], int(case["heads"][0])
    m = x.shape[-1]
    w, b = case["in_weight"].reshape(3, m, m), case["in_bias"].reshape(3, m)

    def split(z):
        return z.reshape(*z.shape[:2], h, m // h).transpose(0, 2, 1, 3)

    def merge(z):
        return z.transpose(0, 2, 1, 3).reshape(z.shape[0], z.shape[2], m)

    mask = regard.lengths(case["lengths"].astype(int)) if "lengths" in case else regard.full()
    if "causal" in case:
        mask = mask & regard.causal()
    q, k, v = (split(z @ w[n].T + b[n]) for n, z in enumerate((x, y, y)))
    close(regard.weights(q, k, mask=mask), case["weights"])
    dmerged = case["dout"] @ case["out_weight"]
    out, grads = regard.attend_vjp(q, k, v, split(dmerged), mask=mask)
    merged = merge(out)
    close(merged @ case["out_weight"].T + case["out_bias"], case["out"])
    close(np.einsum("bto,btm->om", case["dout"], merged), case["dout_weight"])
    dq, dk, dv = (merge(grads[key]) for key in ("q", "k", "v"))
    close(dq @ w[0], case["dx"])
    close(dk @ w[1] + dv @ w[2], case["dy"])
    products = [np.einsum("bto,btm->om", d, z) for d, z in ((dq, x), (dk, y), (dv, y))]
    close(np.concatenate(products), case["din_weight"])
    close(np.concatenate([d.sum((0, 1)) for d in (dq, dk, dv)]), case["din_bias"])
