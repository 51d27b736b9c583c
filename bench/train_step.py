"""A training step of a GPT: Regard, PyTorch eager and plain Burn, in turns, on the same threads.

    python bench/train_step.py [--small] [--rounds N] [--json] [--no-plain]

Forward, loss, backward, clipping and AdamW of a GPT with 6 layers, width 384, 6 heads, context
256, batch 8 and 65 characters; --small: 4 layers, width 128, 4 heads, context 64, batch 12.
Builds the example of crates/regard-attention, which is the same model, and runs it between
rounds of PyTorch's. The median of all timed steps counts.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import environment

LARGE = {"layers": 6, "width": 384, "heads": 6, "length": 256, "batch": 8, "vocabulary": 65}
SMALL = {"layers": 4, "width": 128, "heads": 4, "length": 64, "batch": 12, "vocabulary": 65}


def model(size):
    """The same GPT in PyTorch: pre-norm, GELU, learned positions, a head of its own."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    width, heads = size["width"], size["heads"]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, _ = x.shape
            qkv = self.qkv(self.norm_1(x)).view(b, t, 3, heads, width // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            return x + self.down(F.gelu(self.up(self.norm_2(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(size["vocabulary"], width)
            self.positions = nn.Embedding(size["length"], width)
            self.blocks = nn.ModuleList(Block() for _ in range(size["layers"]))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, size["vocabulary"], bias=False)

        def forward(self, ids):
            x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    gpt = Gpt()
    adamw = torch.optim.AdamW(gpt.parameters(), 3e-4)

    def step():
        shape = (size["batch"], size["length"])
        ids, targets = (torch.randint(0, size["vocabulary"], shape) for _ in range(2))
        loss = F.cross_entropy(gpt(ids).flatten(0, 1), targets.flatten())
        adamw.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        adamw.step()
        return loss.item()

    return step


def by_torch(step, steps):
    step()
    times = []
    for _ in range(steps):
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    return times


def by_example(program, flags, steps):
    """The times that the example prints, in seconds; its first step does not count."""
    command = [program, "--steps", str(steps + 1), *flags]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(x) for x in re.findall(r"^step\s+\d+\s+([0-9.]+) s", text, re.M)][1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-plain", action="store_true", help="leave out plain Burn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    environment.enter(given.threads, build=False)

    import torch

    root = environment.HERE.parent
    build = ["cargo", "build", "--release", "-p", "regard-attention", "--example", "gpt_step"]
    subprocess.run(build, check=True, cwd=root, stdout=sys.stderr)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    program = target / "release" / "examples" / "gpt_step"
    os.environ["REGARD_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = str(given.threads)
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    step = model(SMALL if given.small else LARGE)
    flags, steps = (["--small"], 30) if given.small else ([], 4)
    times = {"Regard": [], "PyTorch": [], "plain Burn": []}
    for _ in range(given.rounds):
        times["PyTorch"] += by_torch(step, steps)
        times["Regard"] += by_example(program, flags, steps)
        if not given.no_plain:
            times["plain Burn"] += by_example(program, [*flags, "--plain"], max(2, steps // 4))
    found = {name: statistics.median(x) for name, x in times.items() if x}
    least = {name: min(x) for name, x in times.items() if x}
    if given.json:
        print(json.dumps({"median_s": found, "min_s": least}))
        return
    print("| step | median ms | fastest ms | × Regard |\n|---|--:|--:|--:|")
    for name, seconds in found.items():
        ratio = seconds / found["Regard"]
        print(f"| {name} | {1e3 * seconds:.1f} | {1e3 * least[name]:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
