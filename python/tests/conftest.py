"""Small random arrays, the same in every run."""

import numpy as np
import pytest
import regard


class Make:
    """float32 arrays of given shapes from one generator."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def qkv(self, b=2, h=4, hk=2, t=5, s=9, d=8, e=None):
        return self(b, h, t, d), self(b, hk, s, d), self(b, hk, s, e or d)

    def params(self, score, h=4, t=5, s=9, d=8):
        """What a score asks for without settings, by the shapes of the catalogue."""
        sizes = {"H": h, "D": d, "Dq": d, "Dk": d, "S+T": s + t}
        row = next(row for row in regard.variants()
                   if (row["kind"], row["name"]) == ("score", score))
        given, numbers = {}, [0.7, np.array(-0.4, np.float32)]
        for name, shape in row["params"].items():
            if "if " in shape:
                continue  # comes with a setting
            if shape.startswith("["):
                letters = shape[1:].split("]")[0].split(",")
                given[name] = self(*(sizes[letter] for letter in letters))
            elif name == "sigma":
                given[name] = 4.5
            else:
                given[name] = numbers.pop(0)
        return given


@pytest.fixture
def make():
    return Make()
