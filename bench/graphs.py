"""A training step of GAT on Cora: Regard and PyTorch Geometric, in turns, on the same threads.

    python bench/graphs.py [--rounds N] [--steps N] [--threads N] [--json]

The model and the step are those of the recipe cora-gat: two layers, 8 heads of 8 and one, dropout
of 0.6 on features and weights, cross-entropy of 140 labels, L2, Adam. The data are in REGARD_DATA
(planetoid). PyTorch Geometric is measured as its examples write it, with features as a dense
tensor and the weights of Adam decayed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def cora(torch):
    folder = pathlib.Path(os.environ["REGARD_DATA"]) / "planetoid" / "derived-text"
    rows = [line.rstrip("\n").split("\t") for line in open(folder / "cora.nodes.tsv")]
    columns = [[int(c) for c in row[3].split()] for row in rows]
    x = torch.zeros(len(rows), 1 + max(max(c) for c in columns if c))
    for i, c in enumerate(columns):
        x[i, c] = 1 / len(c)
    ends = torch.tensor([[int(n) for n in line.split()] for line in open(folder / "cora.edges.tsv")])
    index = torch.cat([ends, ends.flip(1)]).T.contiguous()
    train = torch.tensor([row[1] == "train" for row in rows])
    return x, index, torch.tensor([int(row[2]) for row in rows]), train


def peer(torch, steps):
    """Milliseconds of each step."""
    import torch.nn.functional as F
    from torch_geometric.nn import GATConv

    class Gat(torch.nn.Module):
        def __init__(self, inputs, labels):
            super().__init__()
            self.first = GATConv(inputs, 8, heads=8, dropout=0.6)
            self.second = GATConv(64, labels, heads=1, concat=False, dropout=0.6)

        def forward(self, x, index):
            x = F.dropout(x, p=0.6, training=self.training)
            x = F.elu(self.first(x, index))
            x = F.dropout(x, p=0.6, training=self.training)
            return self.second(x, index)

    x, index, labels, train = cora(torch)
    model = Gat(x.shape[1], int(labels.max()) + 1)
    adam = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        adam.zero_grad()
        loss = F.cross_entropy(model(x, index)[train], labels[train])
        loss.backward()
        adam.step()
        times.append(1e3 * (time.perf_counter() - began))
    return times[steps // 10:]


def ours(program, steps, threads):
    command = [program, "bench", "step", str(ROOT / "recipes" / "cora-gat.toml"), "--json"]
    command += ["--steps", str(steps), "--threads", str(threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["ms"]


def main():
    given = arguments()
    inside = os.environ.get("REGARD_BENCH") == "inside"
    if not inside:
        subprocess.run(["cargo", "build", "--release"], cwd=ROOT, check=True)
    environment.enter(given.threads, build=False)

    import torch

    torch.set_num_threads(given.threads)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = str(target / "release" / "regard")
    found = {"Regard": [], "PyTorch Geometric": []}
    for _ in range(given.rounds):
        found["Regard"].append(ours(program, given.steps, given.threads))
        found["PyTorch Geometric"].append(statistics.median(peer(torch, given.steps)))
    medians = {name: statistics.median(times) for name, times in found.items()}
    ratio = medians["PyTorch Geometric"] / medians["Regard"]
    if given.json:
        print(json.dumps({"ms": medians, "ratio": ratio, "threads": given.threads}))
        return
    print(f"| a training step of GAT on Cora, {given.threads} threads | ms | |\n|---|--:|--:|")
    for name, ms in medians.items():
        print(f"| {name} | {ms:.2f} | {medians['PyTorch Geometric'] / ms:.2f}× |")
    print(f"\nPyTorch {torch.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
