"""Sixteen sequences beside one, and eight that write beside a long prompt, by Regard.

    python bench/batching.py [--threads N] [--rounds N] [--json] [--config FILE]

The model has the shape of SmolLM2-135M (30 layers, width 576, 9 heads, 3 of keys) unless --config
gives another config.json; its weights are random, in f32, int8 and int4. A row is the tokens per
second of one sequence and of sixteen, then the time of a token of the slowest of eight sequences
by themselves, and while a prompt of 4,000 tokens is read beside them. Run nothing else meanwhile.

Needs no other library; REGARD names the program [default: target/release/regard].
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SMOLLM2_135M = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 576,
    "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
    "num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 8192,
    "rope_theta": 100000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
    "hidden_act": "silu", "initializer_range": 0.04, "bos_token_id": 0, "eos_token_id": 0,
}

# Least ratio of sixteen to one by the type of the weights, and largest slowdown of a writer.
WANTED, SLOWEST = {"f32": 5.0, "int8": 5.0, "int4": 3.5}, 3.0


def program():
    here = pathlib.Path(__file__).resolve().parent.parent
    binary = pathlib.Path(os.environ.get("REGARD", here / "target" / "release" / "regard"))
    if not binary.is_file():
        sys.exit(f"{binary}: there is no program; cargo build --release makes it")
    return binary


def measured(binary, folder, storage, cache, given):
    command = [
        binary, "bench", "together", "--model", folder, "--prompt", given.prompt, "--rounds",
        given.rounds, "--new-tokens", given.new_tokens, "--kv-cache", cache, "--json",
    ]
    if storage != "f32":
        command += ["--storage", storage]
    if given.threads:
        command += ["--threads", given.threads]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--new-tokens", type=int, default=48)
    parser.add_argument("--prompt", type=int, default=4000)
    parser.add_argument("--config", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    config = json.loads(given.config.read_text()) if given.config else SMOLLM2_135M
    binary, rows = program(), []
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        for storage, cache in [("f32", "f32"), ("int8", "f32"), ("int4", "f32"), ("int8", "int8")]:
            found = measured(binary, folder, storage, cache, given)
            rows.append({"weights": storage, **found})
            print(f"{storage}, caches in {cache}: done", file=sys.stderr)
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print("| weights | KV cache | one, tokens/s | 16, tokens/s | ratio | wanted | a token of 8, ms "
          "| beside a prompt, ms | slowdown | wanted | prompt, s |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        beside, wanted = row["beside"], WANTED[row["weights"]]
        print(
            f"| {row['weights']} | {row['kv_cache']} | {row['one']:.1f} | {row['together']:.1f} | "
            f"{row['ratio']:.2f} | ≥ {wanted} | {beside['alone_ms']:.1f} | "
            f"{beside['beside_ms']:.1f} | {beside['slowdown']:.2f} | ≤ {SLOWEST} | "
            f"{beside['seconds']:.1f} |"
        )


if __name__ == "__main__":
    main()
