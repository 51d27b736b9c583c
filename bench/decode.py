"""Reading prompts and writing with GGUF files, beside llama.cpp: the same files, the same threads.

    python bench/decode.py [--shape smollm2-135m qwen3-0.6b] [--types Q8_0 Q4_0] [--threads N]
                           [--rounds N] [--isa avx2] [--json]

Files with random weights are made in bench/.venv the first time, by the PyPI package gguf: matrices
in the type, norms in single precision. A prompt of 512 tokens is read, then 128 tokens are written
from an empty cache, by Regard and by llama.cpp in turns; its CPU variants that this machine can run
(best, its own choice; haswell, AVX2 only) are measured and the fastest counts. --isa avx2 forces
AVX2 in Regard and takes llama.cpp's haswell. Medians of all rounds, in a table as llama-bench has.
REGARD_PROGRAM is the path of a program to measure instead of building this one.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import environment

# Width, layers, heads of queries and of keys, width of a head, inner width, words.
SHAPES = {
    "smollm2-135m": ("llama", 576, 30, 9, 3, 64, 1536, 49152),
    "qwen3-0.6b": ("qwen3", 1024, 28, 16, 8, 128, 3072, 151936),
}


def words(count):
    """Tokens of bytes as GPT-2 spells them, one merge, and made-up tokens after them."""
    spelled = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in spelled]
    of_byte = {byte: chr(byte) for byte in spelled}
    of_byte.update({byte: chr(256 + at) for at, byte in enumerate(others)})
    first = ["<|endoftext|>", *(of_byte[byte] for byte in range(256)), "ab"]
    return [*first, *(f"word{at}" for at in range(count - len(first)))]


def made(shape, kind):
    """The path of the file of a shape and type."""
    import gguf
    import numpy as np

    home = environment.HERE / ".venv" / "models"
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"{shape}.{kind}.gguf"
    if path.exists():
        return path
    arch, width, layers, heads, keys, head, inner, vocabulary = SHAPES[shape]
    print(f"writing {path.name} ...", file=sys.stderr)
    random = np.random.default_rng(1)
    kinds = gguf.GGMLQuantizationType
    writer = gguf.GGUFWriter(str(path) + ".part", arch)
    writer.add_context_length(8192)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(keys)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(100000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    tokens = words(vocabulary)
    writer.add_token_list(tokens)
    types = gguf.TokenType
    writer.add_token_types([types.CONTROL, *([types.NORMAL] * (vocabulary - 1))])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)

    def matrix(name, rows, columns, deviation):
        if kind == "F32":
            values = deviation * random.standard_normal((rows, columns), dtype=np.float32)
            writer.add_tensor(name, values)
            return
        # Random blocks of 32 with one scale: to quantise random numbers takes minutes.
        size, deviation_of_one = {"Q8_0": (32, 73.9), "Q4_0": (16, 4.61)}[kind]
        blocks = random.integers(0, 256, (rows * columns // 32, 2 + size), dtype=np.uint8)
        scale = np.array([deviation / deviation_of_one], np.float16)
        blocks[:, :2] = scale.view(np.uint8)
        packed = blocks.reshape(rows, columns // 32 * (2 + size))
        writer.add_tensor(name, packed, raw_dtype=kinds[kind])

    def ones(name, size):
        writer.add_tensor(name, np.ones(size, np.float32))

    matrix("token_embd.weight", vocabulary, width, 0.02)
    for layer in range(layers):
        block = f"blk.{layer}."
        ones(block + "attn_norm.weight", width)
        matrix(block + "attn_q.weight", heads * head, width, width**-0.5)
        matrix(block + "attn_k.weight", keys * head, width, width**-0.5)
        matrix(block + "attn_v.weight", keys * head, width, width**-0.5)
        matrix(block + "attn_output.weight", width, heads * head, (heads * head) ** -0.5)
        if arch == "qwen3":
            ones(block + "attn_q_norm.weight", head)
            ones(block + "attn_k_norm.weight", head)
        ones(block + "ffn_norm.weight", width)
        matrix(block + "ffn_gate.weight", inner, width, width**-0.5)
        matrix(block + "ffn_up.weight", inner, width, width**-0.5)
        matrix(block + "ffn_down.weight", width, inner, inner**-0.5)
    ones("output_norm.weight", width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    pathlib.Path(str(path) + ".part").rename(path)
    return path


def ours(binary, path, given):
    """Tokens per second of a prompt of 512 tokens, and of 128 that are written."""

    def call(*flags):
        command = [binary, "bench", "texts", "--mode", "generate", "--model", path, "--rounds", "2"]
        command = [*command, "--json", "--threads", given.threads, *flags]
        said = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
        return json.loads(said.stdout)

    prompt = call("--tokens", given.prompt, "--new-tokens", 1)
    written = call("--tokens", 1, "--new-tokens", given.new)
    return given.prompt / prompt["ms"] * 1e3, 1e3 / written["writing"]["ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--types", nargs="+", default=["Q8_0", "Q4_0"], choices=["F32", "F16", "Q8_0", "Q4_0"])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--isa", choices=["avx2"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    environment.enter(given.threads, build=False)
    import llamacpp
    from texts import program

    if given.isa:
        os.environ["REGARD_ISA"] = given.isa
    binary = program()
    variants = ["haswell"] if given.isa else ["best", "haswell"]
    rows = []
    for shape in given.shape:
        for kind in given.types:
            path = made(shape, kind)
            figures = {"regard": ([], [])}
            for _ in range(given.rounds):
                read, written = ours(binary, path, given)
                figures["regard"][0].append(read)
                figures["regard"][1].append(written)
                for variant in variants:
                    said = llamacpp.speed(path, given.threads, given.prompt, given.new, 2, variant)
                    name = f"llama.cpp {said['cpu'] or variant}"
                    held = figures.setdefault(name, ([], []))
                    held[0].extend(said["prefill"])
                    held[1].extend(said["decode"])
            middle = {name: [statistics.median(part) for part in both] for name, both in figures.items()}
            mine = middle.pop("regard")
            best = [max(middle.items(), key=lambda item: item[1][which]) for which in (0, 1)]
            for which, test in enumerate((f"pp{given.prompt}", f"tg{given.new}")):
                peer, theirs = best[which][0], best[which][1][which]
                rows.append({
                    "shape": shape, "type": kind, "bytes": path.stat().st_size, "threads": given.threads,
                    "test": test, "regard": mine[which], "peer": peer, "peer_tokens": theirs,
                    "ratio": mine[which] / theirs,
                })
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print("| model | type | size | threads | test | Regard t/s | llama.cpp t/s | variant | ratio |")
    print("|" + "---|" * 9)
    for row in rows:
        print(
            f"| {row['shape']} | {row['type']} | {row['bytes'] / 1e6:.0f} MB | {row['threads']} | {row['test']} "
            f"| {row['regard']:.1f} | {row['peer_tokens']:.1f} | {row['peer'].removeprefix('llama.cpp ')} "
            f"| {row['ratio']:.2f} |"
        )


if __name__ == "__main__":
    main()
