"""Small random arrays, the same in every run."""

import numpy as np
import pytest


class Make:
    """float32 arrays of given shapes from one generator."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def qkv(self, b=2, h=4, hk=2, t=5, s=9, d=8, e=None):
        return self(b, h, t, d), self(b, hk, s, d), self(b, hk, s, e or d)

    def params(self, score, h=4, t=5, s=9, d=8):
        """What a score asks for."""
        shapes = {
            "additive": {"v": (h, d)},
            "gatv2": {"v": (h, d)},
            "general": {"w": (h, d, d)},
            "relative": {"r": (h, s + t, d), "u": (h, d), "w": (h, d)},
            "edge": {"a_q": (h, d), "a_k": (h, d)},
        }
        given = {name: self(*shape) for name, shape in shapes.get(score, {}).items()}
        if score in ("gaussian", "boxcar", "epanechnikov"):
            given["sigma"] = 4.5
        if score == "keyvalue":
            given.update(a=0.7, b=np.array(-0.4, np.float32))
        return given


@pytest.fixture
def make():
    return Make()
