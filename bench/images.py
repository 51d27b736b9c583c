"""A vision Transformer, compared with PyTorch, on the same threads, in turns.

    python bench/images.py train [--binary REGARD] [--rounds N] [--batch N] [--json]
    python bench/images.py infer [--binary REGARD] [--rounds N] [--batch N] [--json]

train: a step of training the model of recipes/fashion-mnist-vit.toml: forward, loss, backward,
clipping and AdamW of a batch. infer: images to labels. PyTorch runs eagerly, with its fused
attention (scaled_dot_product_attention), its convolutions and its fused AdamW where that is
faster; the faster of its two optimisers counts.

PyTorch runs in this process, Regard in one of its own between its rounds. Without --binary the
program is built first.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import environment

ROOT = environment.HERE.parent


def recipe():
    """The model and the number of images of a batch, as the recipe has them."""
    said = tomllib.loads((ROOT / "recipes" / "fashion-mnist-vit.toml").read_text())
    config = {"image_size": 28, "num_channels": 1, "num_labels": 10} | said["model"]
    return config, said["train"]["batch_tokens"]


def program(given):
    if given.binary:
        return pathlib.Path(given.binary)
    build = ["cargo", "build", "--release", "-p", "regard"]
    subprocess.run(build, check=True, cwd=ROOT, stdout=sys.stderr)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "regard"


def ours(binary, folder, given, what, rounds):
    command = [binary, "bench", "images", "--model", folder, "--do", what, "--json"]
    command += ["--threads", given.threads, "--batch", given.batch, "--rounds", rounds]
    command = [str(part) for part in command]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(text)


def model(config):
    """The same model in PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    width, heads = config["hidden_size"], config["num_attention_heads"]
    inner, drop = config["intermediate_size"], config.get("hidden_dropout_prob", 0.0)
    eps = config.get("layer_norm_eps", 1e-12)
    largest = config.get("stem_halving", "stride") == "max"
    assert config["pooling"] == "mean" and config["positions"] == "learned"

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
            self.drop = nn.Dropout(drop)

        def forward(self, x):
            b, t, _ = x.shape
            qkv = self.qkv(self.norm_1(x)).view(b, t, 3, heads, width // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v)
            x = x + self.drop(self.out(y.transpose(1, 2).reshape(b, t, width)))
            return x + self.drop(self.down(F.gelu(self.up(self.norm_2(x)))))

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            channels = [config["num_channels"], *config["stem_channels"]]
            pairs = zip(channels, channels[1:])
            step = 1 if largest else 2
            self.stem = nn.ModuleList(nn.Conv2d(i, o, 3, step, 1) for i, o in pairs)
            patch, side = config["patch_size"], config["image_size"]
            for _ in self.stem:
                side = side // 2 if largest else -(-side // 2)
            self.patches = nn.Conv2d(channels[-1], width, patch, patch)
            self.places = nn.Parameter(0.02 * torch.randn((side // patch) ** 2, width))
            self.drop = nn.Dropout(drop)
            self.blocks = nn.ModuleList(Block() for _ in range(config["num_hidden_layers"]))
            self.norm = nn.LayerNorm(width, eps)
            self.head = nn.Linear(width, config["num_labels"])

        def forward(self, x):
            for layer in self.stem:
                x = F.gelu(layer(x))
                x = F.max_pool2d(x, 2) if largest else x
            x = self.drop(self.patches(x).flatten(2).transpose(1, 2) + self.places)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x).mean(1))

    return Vit()


def learning_step(config, batch, fused):
    import torch
    from torch.nn import functional as F

    vit = model(config).train()
    adamw = torch.optim.AdamW(vit.parameters(), 1e-4, fused=fused)
    side = config["image_size"]
    pixels = torch.randn(batch, config["num_channels"], side, side)
    labels = torch.arange(batch) % config["num_labels"]

    def step():
        loss = F.cross_entropy(vit(pixels), labels)
        adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(vit.parameters(), 1.0)
        adamw.step()
        return loss.item()

    return step


def looking(config, batch):
    import torch

    vit = model(config).eval()
    side = config["image_size"]
    pixels = torch.randn(batch, config["num_channels"], side, side)

    @torch.inference_mode()
    def look():
        return vit(pixels)

    return look


def timed(call, rounds):
    """Milliseconds of calls, after a first one."""
    call()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - started))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    former = {"learn": "train", "look": "infer"}
    parser.add_argument("what", choices=list(former.values()), type=lambda name: former.get(name, name))
    parser.add_argument("--binary", help="a program that is built already")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="calls in a round")
    parser.add_argument("--batch", type=int, help="images at a time [default: the recipe's]")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    environment.enter(given.threads, build=False)

    import torch

    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    config, batch = recipe()
    given.batch = given.batch or batch
    binary = program(given)
    if given.what == "train":
        peers = {
            "PyTorch": learning_step(config, given.batch, None),
            "PyTorch, fused AdamW": learning_step(config, given.batch, True),
        }
    else:
        peers = {"PyTorch": looking(config, given.batch)}
    times = {"Regard": [], **{name: [] for name in peers}}
    # Former names of the program's modes, so that older builds can be measured too.
    ours_does = {"train": "learn", "infer": "read"}[given.what]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        for _ in range(given.rounds):
            for name, call in peers.items():
                times[name] += timed(call, given.steps)
            # Workers of OpenMP spin for a while after their last region.
            time.sleep(0.1)
            times["Regard"].append(ours(binary, folder, given, ours_does, given.steps)["ms"])
    found = {name: statistics.median(x) for name, x in times.items()}
    ratio = min(found[name] for name in peers) / found["Regard"]
    if given.json:
        print(json.dumps({"batch": given.batch, "threads": given.threads, "ms": found,
                          "ratio": ratio}))
        return
    print(f"{given.what}, {given.batch} images, {given.threads} threads")
    print("| by | median ms | × Regard |\n|---|--:|--:|")
    for name, ms in found.items():
        print(f"| {name} | {ms:.1f} | {ms / found['Regard']:.2f} |")


if __name__ == "__main__":
    main()
