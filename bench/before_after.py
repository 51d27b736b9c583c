"""Two builds of the program beside each other: is the newer one slower anywhere?

    python bench/before_after.py OLD NEW [--rounds N] [--only WORD] [--json]

OLD and NEW are two `regard` binaries. Each row is a command of `regard bench` that both run in
turns, the order swapped in every round; the medians count. A row also says how far the rounds of
one binary lie apart (the middle half of them, by the median): a ratio within that is noise.
Needs no other library. Rows that need data sets are left out unless REGARD_DATA is set. Flags of
`regard bench` have their former names, so that older builds can be measured too.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import types

import texts

SENTENCES = ["They are watching.", "Where did you put the keys of the house that we sold?",
             "I have never seen such a small dog in my life.", "It rains.",
             "The teacher asked us to read the book before the end of the week."]


def cases(folder):
    """(name, arguments, function of the JSON to milliseconds)"""
    def median(direction):
        return lambda found: found[direction]["median_ms"]

    rows = []
    for shape in ["8,8,64,64,64", "8,8,256,256,64", "4,8,512,512,64", "1,4,2048,2048,64",
                  "1,4,2048,2048,128"]:
        for mask in ["full", "causal"]:
            flags = ["attention", "--shape", shape, "--mask", mask, "--backward"]
            for direction in ["forward", "backward"]:
                rows.append((f"attention {shape} {mask} {direction}", flags, median(direction)))
    window = ["attention", "--shape", "1,4,8192,8192,64", "--mask", "window(128,0)", "--backward"]
    additive = ["attention", "--shape", "32,1,30,30,256", "--score", "additive", "--backward"]
    for direction in ["forward", "backward"]:
        rows.append((f"attention window 128 {direction}", window, median(direction)))
        rows.append((f"attention additive {direction}", additive, median(direction)))

    minilm = str(texts.minilm(types.SimpleNamespace(model=None)))
    gpt2 = folder / "gpt2"
    gpt2.mkdir()
    (gpt2 / "config.json").write_text(json.dumps(texts.GPT2))
    for batch, tokens in texts.SHAPES:
        flags = ["texts", "--model", minilm, "--batch", batch, "--tokens", tokens]
        rows.append((f"MiniLM reads {batch} x {tokens}", flags, lambda found: found["ms"]))
    for batch, tokens in [(32, 32), (16, 128)]:
        flags = ["texts", "--model", minilm, "--do", "learn", "--batch", batch, "--tokens", tokens]
        rows.append((f"MiniLM learns {batch} x {tokens}", flags, lambda found: found["ms"]))
    write = ["texts", "--model", str(gpt2), "--do", "write", "--tokens", 512, "--words", 24]
    rows.append(("GPT-2 first token after 512", write, lambda found: found["ms"]))
    rows.append(("GPT-2 each token", write, lambda found: found["writing"]["ms"]))

    lines = folder / "lines.txt"
    lines.write_text("\n".join(SENTENCES * 20) + "\n")
    for model in ["en-fr", "en-fr-bahdanau"]:
        for batch in [32, 1]:
            flags = ["translate", "--model", model, "--lines", str(lines), "--batch", batch]
            rows.append((f"translate {model}, batch {batch}", flags,
                         lambda found: 1e3 / found["sentences_per_second"]))
    if os.environ.get("REGARD_DATA"):
        for recipe in ["shakespeare-gpt-small", "shakespeare-gpt", "cmudict30k-additive",
                       "cora-gat", "fashion-mnist-vit", "tatoeba-en-fr-transformer"]:
            steps = {"cora-gat": 50, "shakespeare-gpt-small": 60}.get(recipe, 12)
            flags = ["step", recipe, "--steps", steps]
            rows.append((f"step of {recipe}", flags, lambda found: found["ms"]))
    return rows


def run(binary, flags):
    command = [binary, "bench", *map(str, flags), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def spread(times):
    """The middle half of the rounds, by their median."""
    if len(times) < 4:
        return (max(times) - min(times)) / statistics.median(times)
    low, _, high = statistics.quantiles(times, n=4)
    return (high - low) / statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    binaries = {name: str(pathlib.Path(path).resolve())
                for name, path in [("old", given.old), ("new", given.new)]}
    results = []
    with tempfile.TemporaryDirectory() as home:
        rows = [row for row in cases(pathlib.Path(home)) if given.only in row[0]]
        if not rows:
            sys.exit(f"--only: no row has {given.only!r} in its name")
        # Rows that come from one command are measured by one run of it.
        commands = {}
        for name, flags, pick in rows:
            commands.setdefault(tuple(flags), []).append((name, pick))
        for flags, picks in commands.items():
            found = {"old": [], "new": []}
            for turn in range(given.rounds):
                for which in ["old", "new"] if turn % 2 == 0 else ["new", "old"]:
                    found[which].append(run(binaries[which], flags))
            for name, pick in picks:
                old, new = ([pick(one) for one in found[which]] for which in ("old", "new"))
                row = {"what": name, "old_ms": statistics.median(old),
                       "new_ms": statistics.median(new), "spread": max(spread(old), spread(new))}
                row["ratio"] = row["old_ms"] / row["new_ms"]
                results.append(row)
                print(f"{name}: {row['old_ms']:.3f} / {row['new_ms']:.3f} ms, "
                      f"{row['ratio']:.2f} (spread {row['spread']:.2f})", file=sys.stderr)
    if given.json:
        print(json.dumps(results, indent=1))
        return
    print("| what | old ms | new ms | old / new | spread |\n|---|--:|--:|--:|--:|")
    for row in results:
        print(f"| {row['what']} | {row['old_ms']:.3f} | {row['new_ms']:.3f} | "
              f"{row['ratio']:.2f} | {row['spread']:.2f} |")
    mean = statistics.geometric_mean(row["ratio"] for row in results)
    print(f"\ngeometric mean of old / new: {mean:.3f}")


if __name__ == "__main__":
    main()
