"""Language models to Regard and back: what transformers and PEFT load of what Regard saves.

    python3 bench/roundtrip.py [--regard PROGRAM] [NAME...]

For each of today's families, transformers makes a small checkpoint with random weights: heads in
groups of three, a single key head, heads whose width is not the model's divided by their number,
windows shorter than the text, rotary positions scaled past their original length, vocabularies that
are no multiple of 16. The example `roundtrip` of regard-models opens it and saves it again; then

- transformers loads what was saved, and its logits are those of the original, bit for bit;
- Regard's logits are within 1e-4 of them, relative to the largest;
- the gradients of a fine-tuning step are within 1e-3, relative to the largest of their tensor (or to
  a hundredth of the largest of all, where they are 0 but for rounding);
- 64 greedy tokens are the same, up to a first step whose two best logits differ by less than 1e-4,
  which is shown.

With --regard (default: target/release/regard, if it is there) the program trains a small language
model, and a LoRA adapter of it; PEFT loads the adapter and gives Regard's logits within 1e-4, beside
the weights and merged into them, and transformers loads what `regard models export --adapter` wrote.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS, TEXT = 64, 24
BASE = dict(
    vocab_size=101, hidden_size=36, num_hidden_layers=3, num_attention_heads=9, num_key_value_heads=3,
    intermediate_size=50, max_position_embeddings=160, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)
LLAMA3 = dict(
    rope_type="llama3", rope_theta=100.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
PLAIN = dict(rope_type="default", rope_theta=100.0)
GEMMA = BASE | dict(head_dim=10, query_pre_attn_scalar=12, sliding_window=7, num_hidden_layers=6)
ROWS = {
    "llama": ("Llama", BASE | dict(rope_parameters=PLAIN)),
    "llama-scaled": ("Llama", BASE | dict(rope_parameters=LLAMA3, head_dim=16, tie_word_embeddings=True)),
    "llama-one-key": ("Llama", BASE | dict(rope_parameters=PLAIN, num_key_value_heads=1)),
    "smollm3": ("SmolLM3", BASE | dict(rope_parameters=PLAIN, no_rope_layer_interval=2)),
    "mistral": ("Mistral", BASE | dict(rope_parameters=PLAIN, sliding_window=7, head_dim=6)),
    "qwen3": ("Qwen3", BASE | dict(rope_parameters=PLAIN, head_dim=10, num_key_value_heads=1)),
    "gemma2": ("Gemma2", GEMMA | dict(
        rope_parameters=PLAIN, attn_logit_softcapping=2.0, final_logit_softcapping=4.0,
    )),
    "gemma3_text": ("Gemma3", GEMMA | dict(rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=4.0, rope_theta=1000.0),
        sliding_attention=dict(rope_type="default", rope_theta=50.0),
    ))),
    "gpt2": ("GPT2", dict(
        vocab_size=101, n_embd=36, n_layer=3, n_head=3, n_positions=160, bos_token_id=1, eos_token_id=2,
    )),
}


def example(*arguments):
    command = ["cargo", "run", "-q", "--locked", "-p", "regard-models", "--example", "roundtrip", "--"]
    subprocess.run([*command, *map(str, arguments)], check=True, cwd=ROOT)


def random_model(torch, transformers, family, settings):
    name = {"Gemma3": "Gemma3TextConfig"}.get(family, f"{family}Config")
    kind = {"GPT2": "GPT2LMHeadModel"}.get(family, f"{family}ForCausalLM")
    config = getattr(transformers, name)(**settings, attn_implementation="eager")
    model = getattr(transformers, kind)(config).eval()
    adds_one = config.model_type.startswith("gemma")
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            norm = "norm" in key or ".ln_" in key
            parameter.normal_(0, 0.2 if norm else 0.3)
            if norm and key.endswith("weight") and not adds_one:
                parameter += 1
    return model


def greedy(torch, model, ids):
    """Tokens, and the two best logits of each step, without a cache."""
    tokens, pairs = [], []
    with torch.no_grad():
        for _ in range(STEPS):
            best = model(input_ids=ids[None], use_cache=False).logits[0, -1].topk(2)
            tokens.append(best.indices[0].item())
            pairs.append((best.values[0] - best.values[1]).item())
            ids = torch.cat([ids, best.indices[:1]])
    return tokens, pairs


def loaded(transformers, torch, folder):
    kind = transformers.AutoModelForCausalLM
    return kind.from_pretrained(folder, attn_implementation="eager").eval()


def family_row(name, work):
    import torch
    import transformers
    from safetensors.torch import load_file

    family, settings = ROWS[name]
    torch.manual_seed(sum(map(ord, name)))
    model = random_model(torch, transformers, family, settings)
    ids = torch.randint(3, settings["vocab_size"], (TEXT,))
    model.save_pretrained(work / "base")
    model = loaded(transformers, torch, work / "base")
    example(work / "base", work / "again", ",".join(map(str, ids.tolist())), STEPS)
    ours = load_file(work / "again" / "computed.safetensors")
    again = loaded(transformers, torch, work / "again")

    logits = model(input_ids=ids[None], use_cache=False).logits[0]
    with torch.no_grad():
        same = torch.equal(again(input_ids=ids[None], use_cache=False).logits[0], logits)
    scale = logits.abs().max().item()
    apart = (ours["logits"] - logits).abs().max().item() / scale
    loss = torch.nn.functional.cross_entropy(logits[:-1], ids[1:])
    loss.backward()
    gradients = {key: x.grad for key, x in model.named_parameters() if x.grad is not None}
    most = max(x.abs().max().item() for x in gradients.values())
    steep, compared = 0.0, 0
    for key, wanted in gradients.items():
        least = max(wanted.abs().max().item(), 1e-2 * most)
        got = ours[f"gradient.{key}"]
        steep = max(steep, (got - wanted).abs().max().item() / least)
        compared += 1
    tokens, gaps = greedy(torch, model, ids)
    first = [int(x) for x in ours["greedy.tokens"]]
    differs = next((i for i in range(STEPS) if tokens[i] != first[i]), None)
    told = "all the same"
    if differs is not None:
        told = f"the same up to step {differs}, where the two best differ by {gaps[differs]:.1e}"
    print(
        f"{name}: loads back {'with the same bits' if same else 'WITH OTHER LOGITS'}; logits {apart:.1e}, "
        f"{compared} gradients {steep:.1e}; {STEPS} greedy tokens {told} "
        f"({len(set(tokens))} different, least gap {min(gaps):.1e})"
    )
    close = differs is None or gaps[differs] < 1e-4
    return same and apart <= 1e-4 and steep <= 1e-3 and close


RECIPE = """
name = "tiny"
task = "generate"
seed = 3
context = 16
{keys}
[data]
set = "files"
train = "{text}"
{tables}
[train]
steps = 30
batch_tokens = 64
lr = 1e-2
warmup = 3
eval_every = 30
label_smoothing = 0.0
"""
MODELS = {
    "llama": 'model_type = "llama"\nhidden_size = 24\nnum_hidden_layers = 2\nnum_attention_heads = 4\n'
    "num_key_value_heads = 2\nintermediate_size = 40",
    "gpt2": 'model_type = "gpt2"\nn_embd = 24\nn_layer = 2\nn_head = 2',
}


def adapter_row(name, regard, work):
    import torch
    import transformers
    from safetensors.torch import load_file

    def run(*arguments):
        subprocess.run([regard, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)

    def train(run_name, text, keys, tables, *flags):
        (work / "text.txt").write_text(text * 40)
        recipe = work / f"{run_name}.toml"
        recipe.write_text(RECIPE.format(text=work / "text.txt", keys=keys, tables=tables))
        run("train", recipe, "--out", work / run_name, *flags)

    vocabulary = f'[vocabulary]\nkind = "char"\n[model]\n{MODELS[name]}'
    train("base", "abcdefghijklmnopqrstuvwxyz\n", "", vocabulary)
    from_base = f'from = "{work / "base"}"'
    train("lora", "zyxwvutsrqponmlkjihgfedcba\n", from_base, "", "--lora", 3, "--lora-alpha", 7)
    base, adapter = work / "base" / "model", work / "lora" / "model"
    ids = ",".join(str(i % 20 + 3) for i in range(12))
    example(base, work / "said", ids, 0, adapter)
    check = [sys.executable, ROOT / "fixtures" / "make" / "adapters.py", "--check", base, adapter]
    print(f"adapter of {name}: ", end="", flush=True)
    fine = subprocess.run([*check, work / "said" / "computed.safetensors"]).returncode == 0
    run("models", "export", base, "--adapter", adapter, "--out", work / "merged")
    merged = loaded(transformers, torch, work / "merged")
    ours = load_file(work / "said" / "computed.safetensors")
    with torch.no_grad():
        got = merged(input_ids=ours["ids"].long()[None]).logits[0]
    apart = (got - ours["logits"]).abs().max().item()
    print(f"adapter of {name}: transformers loads the export, logits {apart:.1e}")
    return fine and apart <= 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ROWS)}; adapters")
    parser.add_argument("--regard", type=pathlib.Path, help="the program; without one, no adapters")
    given = parser.parse_args()
    environment.enter(1, build=False)
    import transformers

    transformers.utils.logging.disable_progress_bar()
    regard = given.regard or ROOT / "target" / "release" / "regard"
    rows = [name for name in ROWS if name in given.names or not given.names]
    fine = []
    for name in rows:
        with tempfile.TemporaryDirectory() as work:
            fine.append(family_row(name, pathlib.Path(work)))
    if "adapters" in given.names or not given.names:
        if regard.exists():
            for name in MODELS:
                with tempfile.TemporaryDirectory() as work:
                    fine.append(adapter_row(name, regard.resolve(), pathlib.Path(work)))
        else:
            print(f"skipped: adapters, there is no {regard} (cargo build --release)")
    if not all(fine):
        raise SystemExit(f"{fine.count(False)} of {len(fine)} differ")


if __name__ == "__main__":
    main()
