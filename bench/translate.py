"""Translation and its training beside CTranslate2, transformers and PyTorch, on the same weights.

    python bench/translate.py --model FOLDER [--sentences N] [--rounds N] [--json]
    python bench/translate.py --train RECIPE [--steps N] [--rounds N] [--json]

The first form translates held-out English sentences of tatoeba with one model (a folder of ours,
saved with Marian's names) by Regard and by CTranslate2, each in float32 and int8, and by
transformers' generate: four beams, 32 sentences at a time and one at a time, in turns. CTranslate2
runs as one worker with all threads and as a worker for each thread, and the faster of the two
counts; so does Regard. It also takes the time from the start of a process to its first translation.
--isa avx2 forces AVX2 for both (CTranslate2 by its variable CT2_FORCE_CPU_ISA and those of its
libraries).

The second form trains the recipe's Transformer for some steps by Regard and by PyTorch eager
(transformers' Marian with its scaled dot-product attention), on batches that are made in the same
way from the same data, and compares target tokens a second.

Data is read from REGARD_DATA. REGARD_PROGRAM is the path of a program to measure instead of
building this one.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import environment

BEAMS = 4


def program():
    if os.environ.get("REGARD_PROGRAM"):
        return pathlib.Path(os.environ["REGARD_PROGRAM"])
    root = environment.HERE.parent
    build = ["cargo", "build", "--release", "-p", "regard"]
    subprocess.run(build, check=True, cwd=root, stdout=sys.stderr)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    return target / "release" / "regard"


def pairs():
    path = pathlib.Path(os.environ["REGARD_DATA"]) / "tatoeba-fra-eng" / "fra.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")[:2]) for line in lines if "\t" in line]


def ctranslate2_model(folder, model, tokens, into):
    """Our weights as CTranslate2 has them; its own converter wants a SentencePiece model too."""
    from ctranslate2.converters.transformers import BartLoader

    # Its loader for Marian takes the last row for padding and begins with nothing; ours has its
    # padding in row 0 and begins with a token.
    model.config.normalize_before = model.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(model)
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    config = json.loads((folder / "config.json").read_text())
    spec.config.bos_token = spec.config.decoder_start_token = tokens[
        config["decoder_start_token_id"]
    ]
    spec.config.eos_token = tokens[config["eos_token_id"]]
    spec.config.unk_token = "<unk>"
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize()
    os.makedirs(into)
    spec.save(into)


def translation(given):
    import ctranslate2
    import tokenizers
    import torch
    from transformers import MarianMTModel

    folder, ours = pathlib.Path(given.model), program()
    torch.set_num_threads(given.threads)
    model = MarianMTModel.from_pretrained(folder).eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    texts = sorted({english for english, _ in pairs()}, key=lambda text: hash_of(text))
    texts = texts[: given.sentences]
    encoded = [tokenizer.encode(text, add_special_tokens=False).tokens + ["</s>"] for text in texts]
    with tempfile.TemporaryDirectory() as room:
        ctranslate2_model(folder, model, tokens, room + "/ct2")
        theirs = {
            (storage, workers): ctranslate2.Translator(
                room + "/ct2", device="cpu", compute_type=name, inter_threads=workers,
                intra_threads=given.threads // workers,
            )
            for storage, name in (("f32", "float32"), ("int8", "int8"))
            for workers in sorted({1, given.threads})
        }
        lines = pathlib.Path(room) / "lines.txt"
        lines.write_text("\n".join(texts) + "\n", encoding="utf-8")

        def by_ctranslate2(batch, storage="f32", workers=1):
            found = theirs[storage, workers].translate_batch(
                encoded, beam_size=BEAMS, max_batch_size=batch, max_decoding_length=100,
                length_penalty=1.0,
            )
            return [tokenizer.decode([tokenizer.token_to_id(t) for t in x.hypotheses[0]])
                    for x in found]

        text = subprocess.run([ours, "translate", "--model", folder, "--num-beams", str(BEAMS)],
                              input=lines.read_text(encoding="utf-8"), check=True,
                              capture_output=True, text=True).stdout
        equal = sum(a == b for a, b in zip(by_ctranslate2(32), text.splitlines()))
        print(f"{equal} of {len(texts)} translations equal CTranslate2's", file=sys.stderr)

        def by_transformers(batch):
            order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
            for at in range(0, len(order), batch):
                rows = [[tokenizer.token_to_id(t) for t in encoded[i]] for i in order[at:at + batch]]
                wide = max(map(len, rows))
                ids = torch.tensor([row + [0] * (wide - len(row)) for row in rows])
                with torch.inference_mode():
                    model.generate(
                        input_ids=ids, attention_mask=(ids != 0).long(), num_beams=BEAMS,
                        max_length=100, length_penalty=1.0, early_stopping=False,
                        decoder_start_token_id=1, eos_token_id=2, pad_token_id=0,
                    )

        def by_regard(batch, storage, workers):
            command = [ours, "bench", "translate", "--model", folder, "--lines", lines,
                       "--batch", str(batch), "--num-beams", str(BEAMS), "--json"]
            command += ["--threads", str(given.threads), "--workers", str(workers)]
            command += ["--rounds", "1"]
            command += ["--storage", storage] if storage != "f32" else []
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            return json.loads(text)

        rows = []
        for batch in (32, 1):
            times = {("transformers", "f32", 1): []}
            for _ in range(given.rounds):
                for storage, workers in theirs:
                    by_ctranslate2(batch, storage, workers)
                    started = time.perf_counter()
                    by_ctranslate2(batch, storage, workers)
                    took = time.perf_counter() - started
                    times.setdefault(("CTranslate2", storage, workers), []).append(took)
                    time.sleep(0.05)
                    took = by_regard(batch, storage, workers)["seconds"]
                    times.setdefault(("Regard", storage, workers), []).append(took)
                if len(times["transformers", "f32", 1]) < 1:
                    started = time.perf_counter()
                    by_transformers(batch)
                    times["transformers", "f32", 1].append(time.perf_counter() - started)
            found = {key: len(texts) / statistics.median(x) for key, x in times.items()}
            for key, rate in found.items():
                print(batch, *key, f"{rate:.1f} sentences/s", file=sys.stderr)
            best = {
                f"{name} {storage}": max(
                    rate for key, rate in found.items() if key[:2] == (name, storage)
                )
                for name, storage, _ in found
            }
            for storage in ("f32", "int8"):
                best[f"ratio {storage}"] = best[f"Regard {storage}"] / best[f"CTranslate2 {storage}"]
            rows.append({"batch": batch, "sentences_per_second": best})
        starts = []
        for _ in range(7):
            started = time.perf_counter()
            subprocess.run([ours, "translate", "--model", folder, "They are watching."], check=True,
                           stdout=subprocess.DEVNULL)
            starts.append(time.perf_counter() - started)
        rows.append({"first_translation_ms": 1e3 * statistics.median(starts)})
    return rows


def hash_of(text):
    """A fixed order that has nothing to do with the text."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def batches(examples, budget, seed):
    """As ours: shuffled, pools sorted by length, cut where rows × longest exceeds the budget."""
    draw = random.Random(seed)
    order = list(range(len(examples)))
    draw.shuffle(order)
    longest = [max(len(s), len(t) + 1) for s, t in examples]
    cut, pool, size = [], [], 0
    pools = []
    for i in order:
        size += longest[i]
        pool.append(i)
        if size > 50 * budget:
            pools.append(pool)
            pool, size = [], 0
    pools.append(pool)
    for pool in pools:
        pool.sort(key=lambda i: longest[i])
        rows = []
        for i in pool:
            if rows and (len(rows) + 1) * longest[i] > budget:
                cut.append(rows)
                rows = []
            rows.append(i)
        if rows:
            cut.append(rows)
    draw.shuffle(cut)
    return cut


def training(given):
    import tokenizers
    import torch
    from transformers import MarianConfig, MarianMTModel

    torch.set_num_threads(given.threads)
    ours = program()
    rates = {"Regard": [], "PyTorch": []}
    with tempfile.TemporaryDirectory() as room:
        def by_regard(number):
            run = f"{room}/run{number}"
            command = [ours, "train", given.train, "--out", run, "--threads", str(given.threads)]
            for change in (f"train.steps={given.steps}", "train.eval_every=1000000",
                           "train.log_every=1000000", "train.average=0",
                           "evaluate.sentences=1"):
                command += ["--set", change]
            subprocess.run(command, check=True, capture_output=True)
            lines = [json.loads(x) for x in open(f"{run}/metrics.jsonl", encoding="utf-8")]
            last = [line for line in lines if "tokens" in line][-1]
            return last["tokens"] / last["seconds"], pathlib.Path(run) / "model"

        rate, folder = by_regard(0)
        rates["Regard"].append(rate)
        config = MarianConfig.from_pretrained(folder)
        recipe = json.loads(subprocess.run(
            [ours, "train", given.train, "--dump-config", "--json"], check=True,
            capture_output=True, text=True).stdout)
        config._attn_implementation = "sdpa"
        model = MarianMTModel(config).train()
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        encode = lambda texts: [x.ids for x in tokenizer.encode_batch(texts)]
        both = pairs()
        examples = [(s + [2], t) for s, t in zip(encode([p[0] for p in both]),
                                                 encode([p[1] for p in both]))]
        options = recipe["train"]
        adamw = torch.optim.AdamW(model.parameters(), 1e-4, betas=(0.9, 0.98), weight_decay=0.0)
        cut = batches(examples, options["batch_tokens"], 1)

        def pad(rows, with_value):
            wide = max(map(len, rows))
            return torch.tensor([row + [with_value] * (wide - len(row)) for row in rows])

        def step(rows):
            source = pad([examples[i][0] for i in rows], 0)
            target_in = pad([[1] + examples[i][1] for i in rows], 0)
            labels = pad([examples[i][1] + [2] for i in rows], -100)
            logits = model(input_ids=source, attention_mask=(source != 0).long(),
                           decoder_input_ids=target_in).logits
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), ignore_index=-100,
                label_smoothing=options["label_smoothing"])
            adamw.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), options["clip"])
            adamw.step()
            loss.item()
            return sum(len(examples[i][1]) + 1 for i in rows)

        for number in range(given.rounds):
            step(cut[0])
            started, count = time.perf_counter(), 0
            for rows in cut[1 + number * given.steps : 1 + (number + 1) * given.steps]:
                count += step(rows)
            rates["PyTorch"].append(count / (time.perf_counter() - started))
            if number + 1 < given.rounds:
                rates["Regard"].append(by_regard(number + 1)[0])
    return [{"target_tokens_per_second": {n: statistics.median(x) for n, x in rates.items()}}]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="the folder of a Transformer of ours")
    parser.add_argument("--train", help="a recipe of a Transformer")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--isa", choices=["avx2"], help="force an instruction set")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if bool(given.model) == bool(given.train):
        parser.error("need either --model or --train")
    if given.isa:
        # The products of CTranslate2 are those of MKL or oneDNN, which choose for themselves.
        os.environ.update(
            REGARD_ISA="avx2", REGARD_INT_ISA="avx2", CT2_FORCE_CPU_ISA="AVX2",
            MKL_ENABLE_INSTRUCTIONS="AVX2", ONEDNN_MAX_CPU_ISA="AVX2", DNNL_MAX_CPU_ISA="AVX2",
        )
    environment.enter(given.threads, build=False)
    rows = translation(given) if given.model else training(given)
    if given.json:
        print(json.dumps(rows))
        return
    for row in rows:
        for name, value in row.items():
            if isinstance(value, dict):
                best = value.get("Regard")
                parts = [
                    f"{peer} {rate:.2f}" + (f" ({best / rate:.2f}×)" if best else "")
                    for peer, rate in value.items()
                ]
                where = f", batch {row['batch']}" if "batch" in row else ""
                print(f"{name}{where}: " + ", ".join(parts))
            elif name != "batch":
                print(f"{name}: {value:.0f}")


if __name__ == "__main__":
    main()
