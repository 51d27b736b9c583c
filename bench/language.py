"""A GPT that learns Shakespeare letter by letter: the recipe, and nanoGPT's way in PyTorch.

    python bench/language.py [--steps N] [--seeds N] [--lr X] [--json]

nanoGPT (Karpathy 2022) at the sizes it proposes for CPUs: 4 layers, width 128, 4 heads, context
64, batch 12, no dropout, no biases, the head tied to the table, smaller first values for what
adds to the stream, AdamW (0.9, 0.99) with decay 0.1 of matrices, 100 steps of warm-up to the
learning rate and a cosine to a tenth of it, clipping at 1. The rate is nanoGPT's 1e-3 for both
unless --lr gives another; the recipe has 4e-3. Windows are drawn at random. Both run on the same threads, one
after the other; both are measured on all of the last tenth of the text, in windows of 64 letters,
and as nanoGPT does on 20 batches of 12 windows at random places of it, the same for both.
Seconds are those of the steps alone.

Data is read from REGARD_DATA.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import environment
from texts import program

LAYERS, WIDTH, HEADS, CONTEXT, BATCH = 4, 128, 4, 64, 12


def text():
    path = pathlib.Path(os.environ["REGARD_DATA"]) / "tinyshakespeare"
    return next(path.glob("*.txt")).read_text()


def letters():
    import torch

    whole = text()
    table = {letter: i for i, letter in enumerate(sorted(set(whole)))}
    ids = torch.tensor([table[letter] for letter in whole])
    border = int(0.9 * len(ids))
    return ids[:border], ids[border:], len(table)


def gpt(words):
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = (nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH, bias=False)
            self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
            self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(self.norm_1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.down(F.gelu(self.up(self.norm_2(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, WIDTH)
            self.places = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH, bias=False)
            for name, p in self.named_parameters():
                if p.dim() == 2:
                    adds = name.endswith(("out.weight", "down.weight"))
                    nn.init.normal_(p, 0, 0.02 / (math.sqrt(2 * LAYERS) if adds else 1))

        def forward(self, ids):
            x = self.words(ids) + self.places.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            return F.linear(self.norm(x), self.words.weight)

    return Gpt()


def rate(step, steps, lr):
    if step < 100:
        return lr * (step + 1) / 101
    through = (step - 100) / max(1, steps - 100)
    return 0.1 * lr + 0.5 * (1 + math.cos(math.pi * through)) * 0.9 * lr


def drawn_loss(logits, ids):
    """The loss on 20 batches at random places of `ids`; `logits` are those of a batch."""
    import torch
    from torch.nn import functional as F

    draw = torch.Generator().manual_seed(1337)
    losses = []
    with torch.inference_mode():
        for _ in range(20):
            starts = torch.randint(len(ids) - CONTEXT, (BATCH,), generator=draw)
            rows = torch.stack([ids[i : i + CONTEXT + 1] for i in starts.tolist()])
            found = logits(rows[:, :-1])
            losses.append(F.cross_entropy(found.flatten(0, 1), rows[:, 1:].flatten()).item())
    return sum(losses) / len(losses)


def by_torch(steps, seed, lr):
    """The losses on all of the last tenth and at random places, and the seconds of the steps."""
    import torch
    from torch.nn import functional as F

    torch.manual_seed(seed)
    train, valid, words = letters()
    model = gpt(words)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99))
    seconds = 0
    for step in range(steps):
        began = time.perf_counter()
        for group in adamw.param_groups:
            group["lr"] = rate(step, steps, lr)
        starts = torch.randint(len(train) - CONTEXT, (BATCH,))
        rows = torch.stack([train[i : i + CONTEXT + 1] for i in starts.tolist()])
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        seconds += time.perf_counter() - began
    with torch.inference_mode():
        whole = (len(valid) - 1) // CONTEXT * CONTEXT
        ids, targets = valid[:whole].view(-1, CONTEXT), valid[1 : whole + 1].view(-1, CONTEXT)
        parts = zip(ids.split(256), targets.split(256))
        total = sum(
            F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
            for x, y in parts
        )
    return total / whole, drawn_loss(model, valid), seconds


def by_regard(binary, steps, seed, lr, threads):
    with tempfile.TemporaryDirectory() as home:
        command = [
            binary, "train", "shakespeare-gpt-small", "--out", f"{home}/run", "--seed", seed,
            "--threads", threads, "--set", f"train.steps={steps}",
            "--set", f"train.eval_every={steps}", "--set", f"train.lr={lr}",
        ]
        command = [str(part) for part in command]
        subprocess.run(command, check=True, stdout=sys.stderr, stderr=sys.stderr)
        lines = (pathlib.Path(home) / "run" / "metrics.jsonl").read_text().splitlines()
        drawn = drawn_loss(*by_transformers(pathlib.Path(home) / "run" / "model"))
    marks = {}
    for line in lines:
        marks |= json.loads(line)
    return marks["valid_loss"], drawn, marks["seconds"]


def by_transformers(folder):
    """Our model as transformers opens it: its logits, and the last tenth in its ids."""
    import torch
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(folder).eval()
    table = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    ids = torch.tensor([table[letter] for letter in text()])
    return lambda rows: model(rows).logits, ids[int(0.9 * len(ids)) :]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    environment.enter(given.threads, build=False)

    import torch

    torch.set_num_threads(given.threads)
    binary, rows = program(), []
    for seed in range(1, given.seeds + 1):
        ours = by_regard(binary, given.steps, seed, given.lr, given.threads)
        peer = by_torch(given.steps, seed, given.lr)
        rows.append({
            "seed": seed, "Regard loss": ours[0], "nanoGPT loss": peer[0],
            "Regard drawn": ours[1], "nanoGPT drawn": peer[1],
            "Regard s": ours[2], "nanoGPT s": peer[2], "× nanoGPT": peer[2] / ours[2],
        })
    if given.json:
        print(json.dumps(rows))
        return
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(f"{x:.4g}" for x in row.values()) + " |")


if __name__ == "__main__":
    main()
