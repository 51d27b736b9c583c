"""Arrays go in and out without copies, and the GIL is free meanwhile."""

import threading
import time

import numpy as np
import pytest
import regard


def layouts(x):
    """The same numbers in other places."""
    b, h, n, d = x.shape
    by_rows = np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    by_columns = np.ascontiguousarray(x.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    backwards = np.ascontiguousarray(x[:, :, ::-1, ::-1])[:, :, ::-1, ::-1]
    wide = np.full((b, h, n, 3 * d), np.nan, np.float32)
    wide[..., 1::3] = x
    odd = np.full(x.size + 1, np.nan, np.float32)
    odd[1:] = x.ravel()
    return [by_rows, by_columns, backwards, wide[..., 1::3], odd[1:].reshape(x.shape)]


def test_heads_stay_inside(make):
    """What is [B, T, H, D] in memory comes back as [B, T, H, E]: merging heads copies nothing."""
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (make(2, 5, 4, 8), make(2, 9, 4, 8), make(2, 9, 4, 6)))
    out, grads = regard.attend_vjp(q, k, v, make(2, 4, 5, 6))
    want = regard.attend(*(np.ascontiguousarray(x) for x in (q, k, v)))
    assert want.flags.c_contiguous
    np.testing.assert_array_equal(out, want)
    for x in (out, grads["q"], grads["k"], grads["v"]):
        assert x.transpose(0, 2, 1, 3).flags.c_contiguous


def test_strides_do_not_matter(make):
    q, k, v = make.qkv(t=33, s=70, d=20, e=12)
    dout = make(2, 4, 33, 12)
    out, grads = regard.attend_vjp(q, k, v, dout, mask=regard.causal())
    for each in zip(*map(layouts, (q, k, v, dout))):
        got, g = regard.attend_vjp(*each, mask=regard.causal())
        np.testing.assert_allclose(got, out, atol=1e-6)
        for name in ("q", "k", "v"):
            np.testing.assert_allclose(g[name], grads[name], atol=1e-5)


def test_broadcast_views_are_read_where_they_are(make):
    q, k, v = make.qkv()
    row = k[:1, :1]
    wide = np.broadcast_to(row, k.shape)  # strides of 0
    np.testing.assert_array_equal(
        regard.attend(q, wide, v), regard.attend(q, np.ascontiguousarray(wide), v)
    )
    params = {"v": np.broadcast_to(make(8), (4, 8))}
    same = {"v": params["v"].copy()}
    np.testing.assert_array_equal(
        regard.attend(q, k, v, score="additive", params=params),
        regard.attend(q, k, v, score="additive", params=same),
    )


def test_inputs_are_not_written_and_may_be_read_only(make):
    arrays = make.qkv()
    before = [x.copy() for x in arrays]
    for x in arrays:
        x.flags.writeable = False
    regard.attend_vjp(*arrays, np.ones((2, 4, 5, 8), np.float32))
    for x, y in zip(arrays, before):
        np.testing.assert_array_equal(x, y)


def test_every_element_is_written(make):
    q, k, v = make.qkv(t=64, s=64, d=32)
    mask = regard.window(3, 0)
    want = regard.attend_vjp(q, k, v, q, mask=mask)
    for _ in range(5):
        # Memory that is given back here is what the results are likely to be put into.
        dirt = [np.full(x.shape, np.nan, np.float32) for x in (q, q, k, v)]
        del dirt
        got = regard.attend_vjp(q, k, v, q, mask=mask)
        np.testing.assert_array_equal(got[0], want[0])
        for name in ("q", "k", "v"):
            np.testing.assert_array_equal(got[1][name], want[1][name])


@pytest.mark.parametrize("b, h, t, s", [(0, 2, 3, 3), (1, 2, 0, 3), (1, 2, 3, 0)])
def test_empty_arrays(make, b, h, t, s):
    q, k, v = make(b, h, t, 4), make(b, h, s, 4), make(b, h, s, 6)
    out, grads = regard.attend_vjp(q, k, v, make(b, h, t, 6))
    assert out.shape == (b, h, t, 6) and (out == 0).all()
    for name, x in zip("qkv", (q, k, v)):
        assert grads[name].shape == x.shape and (grads[name] == 0).all()


def test_threads_do_not_matter(make):
    q, k, v = make.qkv(t=300, s=300, d=32)
    before = regard.threads()
    try:
        results = []
        for n in (1, 2, 3):
            regard.set_threads(n)
            assert regard.threads() == n
            results.append(regard.attend_vjp(q, k, v, q, mask=regard.causal()))
    finally:
        regard.set_threads(before)
    for out, grads in results[1:]:
        assert (out == results[0][0]).all()
        assert all((grads[name] == results[0][1][name]).all() for name in "qkv")


def test_the_gil_is_released(make):
    """While kernels run, another thread of Python goes on."""
    x = make(1, 2, 4096, 64)
    ticks, inside, stop = [], [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    before = regard.threads()
    regard.set_threads(1)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in range(5):
            started = time.perf_counter()
            regard.attend(x, x, x)
            ended = time.perf_counter()
            inside.append(sum(started < tick < ended for tick in list(ticks)))
    finally:
        stop.set()
        thread.join()
        regard.set_threads(before)
    assert max(inside) >= 3, inside


def test_the_machine():
    assert regard.isa() in ("avx512", "avx2", "neon", "portable")
    assert regard.peak_gflops() > 0.1
    assert regard.__version__


def test_products_take_any_strides():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((7, 300), dtype=np.float32), rng.standard_normal((300, 21), dtype=np.float32)
    assert np.allclose(regard.matmul(a, b), a @ b, atol=1e-4)
    assert np.allclose(regard.matmul(b.T, a.T), (a @ b).T, atol=1e-4)
    assert np.allclose(regard.matmul(a[::-2], b[:, ::3]), a[::-2] @ b[:, ::3], atol=1e-4)
    with pytest.raises(ValueError, match="b: got 300 rows, need a's 7 columns"):
        regard.matmul(a.T, b)
