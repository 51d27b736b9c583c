"""What is compared: each case does the same in PyTorch and in Regard, on the same arrays."""

import os
import pathlib

import numpy as np
import regard
import torch
from measure import Case
from torch.nn import functional as F

PLANETOID = pathlib.Path(os.environ.get("REGARD_DATA", "data")) / "planetoid"
# Batch × heads for each length: a call takes from a fraction of a millisecond to 0.1 s.
HEADS = {
    64: (8, 8),
    128: (8, 8),
    256: (4, 8),
    512: (2, 8),
    1024: (1, 8),
    2048: (1, 4),
    4096: (1, 4),
}
# Products of T × S × D: two forward; five backward, of which one makes the scores again.
FORWARD, BOTH = 4, 14

rng = np.random.default_rng(0)


def array(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def tensors(*arrays):
    return [torch.from_numpy(x).requires_grad_() for x in arrays]


def agree(names, peer, ours, tolerance=2e-3):
    """Stops if the two do not compute the same."""
    for name, x, y in zip(names, peer, ours):
        x = x.detach().numpy()
        error = abs(x - y).max() / (abs(x).max() + 1e-30)
        assert error < tolerance, f"{name}: relative difference {error:.1e}"


def pair(group, name, arrays, forward, ours, ours_vjp, **rest):
    """Two cases, forward and forward + backward. `arrays` are leaves, the last is dout."""
    *inputs, dout = arrays
    plain = [torch.from_numpy(x) for x in inputs]
    leaves, upstream = tensors(*inputs), torch.from_numpy(dout)
    flops = rest.pop("flops", 0.0)

    @torch.no_grad()
    def peer_forward():
        return forward(*plain)

    def peer_both():
        out = forward(*leaves)
        return out, *torch.autograd.grad(out, leaves, upstream)

    def check():
        agree(["out", *map(str, range(len(inputs)))], peer_both(), ours_vjp())

    labels = rest.pop("labels", {})
    yield Case(group, f"{name} forward", peer_forward, ours, FORWARD * flops, check,
               labels={**labels, "direction": "forward"}, **rest)
    yield Case(group, f"{name} forward + backward", peer_both, ours_vjp, BOTH * flops,
               labels={**labels, "direction": "both"}, **rest)


def dot_product(quick, causal):
    """F.scaled_dot_product_attention, dense or causal."""
    group = "causal" if causal else "dense"
    mask = regard.causal() if causal else None
    for t in (64, 512) if quick else HEADS:
        for d in (64,) if quick else (32, 64, 128):
            b, h = HEADS[t]
            q, k, v, dout = (array(b, h, t, d) for _ in range(4))

            def ours_vjp(q=q, k=k, v=v, dout=dout):
                out, grads = regard.attend_vjp(q, k, v, dout, mask=mask)
                return out, grads["q"], grads["k"], grads["v"]

            yield from pair(
                group,
                f"{group} {b}×{h}×{t}×{d}",
                [q, k, v, dout],
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
                lambda q=q, k=k, v=v: regard.attend(q, k, v, mask=mask),
                ours_vjp,
                flops=b * h * d * (t * (t + 1) / 2 if causal else t * t),
                labels={"t": t, "d": d},
            )


def window(quick):
    """The last 128 keys, against all of them in PyTorch; and twice the length, ours only."""
    t, h, d = (2048 if quick else 8192), 4, 64
    mask = regard.window(127, 0)
    runs = {}
    for n in (t, 2 * t):
        q, k, v, dout = (array(1, h, n, d) for _ in range(4))
        runs[n] = (
            (q, k, v, dout),
            lambda q=q, k=k, v=v: regard.attend(q, k, v, mask=mask),
            lambda q=q, k=k, v=v, dout=dout: regard.attend_vjp(q, k, v, dout, mask=mask),
        )
    arrays, ours, ours_vjp = runs[t]
    *inputs, dout = arrays
    plain = [torch.from_numpy(x) for x in inputs]
    leaves, upstream = tensors(*inputs), torch.from_numpy(dout)

    def check():
        # The same window as a dense mask, to be sure that it is the same.
        i, j = torch.arange(t)[:, None], torch.arange(t)
        allowed = (j <= i) & (j >= i - 127)
        agree(["out"], [F.scaled_dot_product_attention(*plain, attn_mask=allowed)], [ours()])

    @torch.no_grad()
    def dense():
        return F.scaled_dot_product_attention(*plain)

    def dense_both():
        out = F.scaled_dot_product_attention(*leaves)
        return torch.autograd.grad(out, leaves, upstream)

    name = f"window 128, T {t}"
    yield Case("window", f"{name} forward", dense, ours, check=check, repeats=3)
    yield Case("window", f"{name} forward + backward", dense_both, ours_vjp, repeats=3)
    for at, direction in ((1, "forward"), (2, "forward + backward")):
        name = f"window 128, T {2 * t} / T {t}, {direction}"
        yield Case("doubling", name, runs[2 * t][at], runs[t][at])


def additive(quick):
    """Bahdanau's score, against the same in PyTorch operations."""
    for b, h, t, s, d in [(32, 1, 30, 30, 256), (8, 1, 128, 128, 128)]:
        arrays = [array(b, h, t, d), array(b, h, s, d), array(b, h, s, d), array(h, d)]
        dout = array(b, h, t, d)

        def forward(q, k, v, w):
            scores = (torch.tanh(q[:, :, :, None] + k[:, :, None]) @ w[..., None]).squeeze(-1)
            return scores.softmax(-1) @ v

        def ours(arrays=arrays):
            *inputs, w = arrays
            return regard.attend(*inputs, score="additive", params={"v": w})

        def ours_vjp(arrays=arrays, dout=dout):
            *inputs, w = arrays
            out, g = regard.attend_vjp(*inputs, dout, score="additive", params={"v": w})
            return out, g["q"], g["k"], g["v"], g["v_1"]

        name = f"additive {b}×{h}×{t}×{s}×{d}"
        yield from pair("additive", name, [*arrays, dout], forward, ours, ours_vjp)


def cora():
    """Edges (source, target) with self-loops, and features; random ones if there is no data."""
    nodes, width = 2708, 1433
    x = np.zeros((nodes, width), np.float32)
    folder = PLANETOID / "derived-text"
    if (folder / "cora.edges.tsv").exists():
        ends = np.loadtxt(folder / "cora.edges.tsv", dtype=np.int64)
        for line in (folder / "cora.nodes.tsv").read_text().splitlines():
            node, _, _, features = line.split("\t")
            x[int(node), [int(f) for f in features.split()]] = 1
    else:
        ends = rng.integers(0, nodes, (5278, 2))
        x[rng.random(x.shape) < 0.0127] = 1
    loops = np.stack([np.arange(nodes)] * 2, 1)
    return x, np.unique(np.concatenate([ends, ends[:, ::-1], loops]), axis=0)


def graph(quick):
    """A whole GAT layer, projection and bias included, against PyTorch Geometric's GATConv.

    Both get the features as a dense array, of which 1.3 % is not 0; regard.matmul finds that out
    within the call and skips the zeros.
    """
    from torch_geometric.nn import GATConv

    heads, width = 8, 8
    x, edges = cora()
    by_target = edges[np.lexsort((edges[:, 0], edges[:, 1]))]
    counts = np.bincount(by_target[:, 1], minlength=len(x))
    mask = regard.edges(np.concatenate([[0], np.cumsum(counts)]), by_target[:, 0])
    matmul = regard.matmul

    torch.manual_seed(0)
    # The self-loops are in the graph already, so that GATConv need not add them in every call.
    layer = GATConv(x.shape[1], width, heads=heads, add_self_loops=False)
    tx, index = torch.from_numpy(x), torch.from_numpy(np.ascontiguousarray(by_target.T))
    weight, a_k, a_q = (
        np.ascontiguousarray(p.detach().numpy())
        for p in (layer.lin.weight.T, layer.att_src[0], layer.att_dst[0])
    )
    bias = layer.bias.detach().numpy()
    params = {"a_q": a_q, "a_k": a_k}
    dout = array(len(x), heads * width)
    tdout = torch.from_numpy(dout)
    learned = [layer.lin.weight, layer.att_src, layer.att_dst, layer.bias]

    def split(z):
        return z.reshape(1, len(x), heads, width).transpose(0, 2, 1, 3)

    def merge(z):
        return z.transpose(0, 2, 1, 3).reshape(len(x), heads * width)

    def ours():
        z = split(matmul(x, weight))
        return merge(regard.attend(z, z, z, score="edge", mask=mask, params=params)) + bias

    def ours_both():
        z = split(matmul(x, weight))
        out, g = regard.attend_vjp(z, z, z, split(dout), score="edge", mask=mask, params=params)
        dz = merge(g["q"] + g["k"] + g["v"])
        dweight = matmul(x.T, dz)
        return merge(out) + bias, dweight.T, g["a_k"][None], g["a_q"][None], dout.sum(0)

    @torch.no_grad()
    def peer():
        return layer(tx, index)

    def peer_both():
        out = layer(tx, index)
        return out, *torch.autograd.grad(out, learned, tdout)

    def check():
        agree(["out", "weight", "a_k", "a_q", "bias"], peer_both(), ours_both())

    yield Case("gat", "GAT layer on Cora forward", peer, ours, check=check)
    yield Case("gat", "GAT layer on Cora forward + backward", peer_both, ours_both)


GROUPS = {
    "dense": lambda quick: dot_product(quick, causal=False),
    "causal": lambda quick: dot_product(quick, causal=True),
    "window": window,
    "additive": additive,
    "gat": graph,
}
