"""Whether transformers' BertForPreTraining learns as Regard does: the same weights, batches and
steps, and the difference of the loss in every one.

    cargo run --release -p regard-tasks --example pretrain_for_transformers -- \\
        recipes/wikitext2-bert.toml OUT 200 model.hidden_dropout_prob=0.0 \\
        model.attention_probs_dropout_prob=0.0
    python bench/pretrain.py OUT

Dropout is off, because the two draw different numbers. The optimiser is PyTorch's AdamW; as in
Regard, what has one axis does not decay.
"""

import json
import pathlib
import sys

import torch
import transformers

TOLERANCE = 1e-3


def batch(rows):
    """Rows as transformers wants them: padded, with -100 where nothing is guessed."""
    longest = max(len(row["ids"]) for row in rows)
    shape = (len(rows), longest)
    ids, types, seen = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    labels = torch.full(shape, -100)
    for i, row in enumerate(rows):
        n = len(row["ids"])
        ids[i, :n], types[i, :n], seen[i, :n] = torch.tensor(row["ids"]), torch.tensor(row["types"]), 1
        labels[i, row["places"]] = torch.tensor(row["wanted"])
    follows = torch.tensor([0 if row["follows"] else 1 for row in rows])
    return dict(input_ids=ids, token_type_ids=types, attention_mask=seen, labels=labels,
                next_sentence_label=follows)


def main(folder):
    torch.set_num_threads(2)
    model = transformers.BertForPreTraining.from_pretrained(folder).train()
    options = json.loads((folder / "adamw.json").read_text())
    named = list(model.named_parameters())
    groups = [
        dict(params=[p for _, p in named if p.ndim > 1], weight_decay=options["weight_decay"]),
        dict(params=[p for _, p in named if p.ndim <= 1], weight_decay=0.0),
    ]
    adamw = torch.optim.AdamW(groups, betas=options["betas"], eps=options["eps"])
    worst, number, close = 0.0, 0, True
    with open(folder / "steps.jsonl") as lines:
        for number, line in enumerate(lines, 1):
            step = json.loads(line)
            for group in adamw.param_groups:
                group["lr"] = step["lr"]
            adamw.zero_grad()
            loss = model(**batch(step["rows"])).loss
            loss.backward()
            norm = float("inf") if options["max_norm"] is None else options["max_norm"]
            torch.nn.utils.clip_grad_norm_(model.parameters(), norm)
            adamw.step()
            apart = abs(loss.item() - step["loss"])
            worst = max(worst, apart)
            close = close and apart <= TOLERANCE  # not so for NaN
            if number % 20 == 0:
                print(f"step {number}: {step['loss']:.5f} here, {loss.item():.5f} there, {apart:.1e} apart")
    print(f"at most {worst:.1e} apart over {number} steps; the tolerance is {TOLERANCE}")
    return 0 if close and number > 0 else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
