#!/usr/bin/env python3
"""Thousands of damaged and forged files, and what the program does with each of them.

    cargo build --release
    python3 bench/mutate.py --regard target/release/regard --count 10000 --seed 1

Only the standard library of Python 3.11 is needed. The valid files are made first: the folders of
the models that ship (`regard models export`), recipes, and small images, sounds, arrays, tables,
vectors and graphs. Every case is a function of the seed and its number: it takes one valid file,
changes it, runs the verb that reads such a file with `--threads 1`, and looks at how that ended.

A finding is
  panic    exit code 101, or "panicked at" on standard error
  signal   ended by a signal, or with an exit code that is not 0, 1 or 2
  time     more than 10 s of processor time, or 60 s in all; a training, which may be asked to take
           hours, gets SIGINT after 10 s, and must end within 10 s with exit code 130 (or 0, if it was just done). Trainings run
           with --memory 200MB, since a recipe may ask for any model
  memory   a peak of more than 2 x the bytes of all files of the case + 200 MB, over the baseline;
           the baseline is the peak of the same command with the valid file, or that of
           `regard variants` if that is larger, and is printed for each kind
  message  an error of more than 1,000 bytes on standard error, or an error without a word; a line
           of more than that of a command that succeeds

What failed is kept in the folder --keep, with the command in `command.txt`. The exit code is 1 if
there was a finding and 0 if not. `--only CASE` runs one case again, by its number.

The changes are aimed, not only random: numbers become extremes, keys go or come twice, values
change their type, values are nested deeply, sizes in headers are huge, checksums of changed parts
are put right, files are cut off, and bits flip, in headers rather than in data.
"""

import argparse
import collections
import io
import json
import math
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib

SECONDS = 10
WALL = 60
OVER = 200 << 20
# Nothing gets more address space than this, so that a finding does not take the machine with it.
CAP = 8 << 30
LONGEST_MESSAGE = 1000

NUMBERS = [
    0, 1, -1, 2, 3, 7, 8, 127, 128, 255, 256, 1000, 4096, 16384, 65535, 65536, 10**6, 1 << 24,
    (1 << 24) + 1, 1 << 26, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, 1 << 53, (1 << 63) - 1,
    1 << 63, (1 << 64) - 1, 1 << 64, 0.5, -0.5, 1e-9, 1e308, 1e-320, -1e308,
]
VALUES = [None, True, False, "", "x", [], {}, [[]], {"kind": "x"}, "1", "NaN", [1, 2, 3], "\x00", "中" * 50]
LITERALS = ["NaN", "Infinity", "-Infinity", "1e999", "-0", "1E400", "0x10", "nan", "inf"]


# ---- Changes of texts and bytes ------------------------------------------------------------------


def paths(value, path=()):
    """All places in a JSON value, but at most a thousand of a list: vocabularies are long."""
    yield path
    if isinstance(value, dict):
        items = list(value.items())[:1000]
    elif isinstance(value, list):
        items = list(enumerate(value))[:1000]
    else:
        return
    for key, inner in items:
        yield from paths(inner, path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def put(value, path, new):
    if not path:
        return new
    at(value, path[:-1])[path[-1]] = new
    return value


class Twice(dict):
    """A dictionary that is written with one of its keys twice."""


def dump(value):
    """JSON, with keys that come twice and numbers that are none as they are meant."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {dump(inner)}" for key, inner in value.items()]
        if isinstance(value, Twice):
            rows += rows[:1]
        return "{" + ", ".join(rows) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dump(inner) for inner in value) + "]"
    return json.dumps(value)


class Literal:
    def __init__(self, text):
        self.text = text

    def __deepcopy__(self, _):
        return self


def change_value(rng, old):
    choice = rng.randrange(10)
    number = isinstance(old, (int, float)) and not isinstance(old, bool)
    if number and choice < 6 or choice < 2:
        return rng.choice(NUMBERS)
    if number and choice == 6:
        return old + rng.choice([-1, 1]) if rng.random() < 0.5 else old * rng.choice([2, 10, 1000, -1])
    if choice == 7:
        return Literal(rng.choice(LITERALS))
    if choice == 8:
        deep = old
        for _ in range(rng.choice([1, 2, 30, 130, 3000])):
            deep = Literal(f"[{dump(deep)}]" if rng.random() < 0.5 else '{"a": %s}' % dump(deep))
            if len(deep.text) > 100_000:
                break
        return deep
    if isinstance(old, list) and old and choice == 9:
        return old * rng.choice([0, 2, 50]) if len(old) < 1000 else old[: rng.randrange(len(old))]
    if isinstance(old, str) and choice == 9:
        return rng.choice(["", old * 100, old[:-1], old + "\u202e", "../" + old, "/dev/zero", old.upper()])
    return rng.choice(VALUES)


def change_json(rng, text, only=None):
    """Changes some values of a JSON file, or its text."""
    if rng.random() < 0.08:
        return change_bytes(rng, text.encode())
    value = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        places = [path for path in paths(value) if path and (only is None or only(path))]
        if not places:
            break
        # Short places are few and matter most.
        path = min(rng.sample(places, min(3, len(places))), key=len)
        holder = at(value, path[:-1])
        what = rng.randrange(10)
        if what == 0 and isinstance(holder, dict):
            del holder[path[-1]]
        elif what == 1 and isinstance(holder, dict):
            value = put(value, path[:-1], Twice({path[-1]: change_value(rng, holder[path[-1]]), **holder}))
        elif what == 2 and isinstance(holder, dict):
            other = rng.choice(list(holder))
            holder[path[-1]], holder[other] = holder[other], holder[path[-1]]
        elif what == 3 and isinstance(holder, dict):
            holder[rng.choice(["", path[-1] + "x" if isinstance(path[-1], str) else "x", "__proto__"])] = 1
        else:
            value = put(value, path, change_value(rng, at(value, path)))
    return dump(value).encode()


def change_bytes(rng, data, header=None):
    """Cut off, repeated, flipped; in the first `header` bytes rather than behind."""
    data = bytearray(data)
    reach = min(len(data), header or len(data)) or 1
    for _ in range(rng.choice([1, 1, 2, 5])):
        what = rng.randrange(7)
        if not data:
            break
        place = rng.randrange(min(reach, len(data)))
        if what == 0:
            del data[rng.choice([place, rng.randrange(len(data)), max(0, len(data) - 1)]) :]
        elif what in (1, 2):
            data[place] ^= 1 << rng.randrange(8)
        elif what == 3:
            width = rng.choice([1, 2, 4, 8])
            number = rng.choice([0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 62, (1 << 64) - 1])
            number &= (1 << 8 * width) - 1
            data[place : place + width] = number.to_bytes(width, rng.choice(["little", "big"]))
        elif what == 4:
            part = data[place : place + rng.randrange(1, 64)]
            data[place:place] = part * rng.choice([1, 2, 100])
        elif what == 5:
            del data[place : place + rng.randrange(1, 32)]
        else:
            data[place:place] = rng.choice([b"\0" * 8, b"\xff" * 8, b"{" * 500, b"[" * 5000, b"\n", b"\x1b[2J"])
    return bytes(data)


def change_lines(rng, text):
    """A table or a list in a text."""
    if rng.random() < 0.2:
        return change_bytes(rng, text.encode())
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 2, 4])):
        place = rng.randrange(len(lines))
        what = rng.randrange(8)
        if what == 0:
            lines[place : place + 1] = []
        elif what == 1:
            lines[place:place] = [lines[place]] * rng.choice([1, 3, 200])
        elif what == 2:
            lines[place] = lines[place].replace("\t", " ") if rng.random() < 0.5 else lines[place] + "\tmore"
        elif what == 3:
            lines[place] = rng.choice(['"', "\u202e", "\0", "x" * 100_000, "a\tb\tc\td", ",,,,", "\r", "\ufeff" + lines[place]])
        else:
            numbers = list(re.finditer(r"-?\d+(\.\d+)?(e-?\d+)?", lines[place]))
            if numbers:
                number = rng.choice(numbers)
                new = str(rng.choice(NUMBERS + LITERALS))
                lines[place] = lines[place][: number.start()] + new + lines[place][number.end() :]
        if not lines:
            return b""
    return "\n".join(lines).encode()


# ---- Changes of known formats --------------------------------------------------------------------


def change_gguf(rng, data):
    """Cuts, sizes and bytes of the header; what is at the beginning counts most."""
    end = rng.choice([64, 1024, 1 << 16])
    header, rest = data[:end], data[end:]
    what = rng.randrange(4)
    if what == 0:
        return data[: rng.choice([rng.randrange(len(header)), rng.randrange(len(data)), len(data) - 1])]
    if what == 1:
        sizes = [number for number in NUMBERS if isinstance(number, int) and 0 <= number < 1 << 64]
        place = rng.randrange(max(1, len(header) - 8))
        return header[:place] + struct.pack("<Q", rng.choice(sizes)) + header[place + 8 :] + rest
    return change_bytes(rng, header) + rest


def change_safetensors(rng, data):
    size = struct.unpack("<Q", data[:8])[0]
    header, rest = data[8 : 8 + size], data[8 + size :]
    what = rng.randrange(10)
    if what == 0:
        return struct.pack("<Q", rng.choice([0, 1, size - 1, size + 1, 1 << 20, 100_000_001, 1 << 40, (1 << 63) - 1, (1 << 64) - 1])) + header + rest
    if what == 1:
        return data[: rng.choice([rng.randrange(8 + size), rng.randrange(len(data)), len(data) - 1])]
    if what == 2:
        return struct.pack("<Q", size) + change_bytes(rng, header) + rest
    if what == 3:
        bad = struct.pack("<H", rng.choice([0x7E00, 0x7C00, 0xFC00, 0x7BFF, 0])) * 2
        place = rng.randrange(max(1, len(rest) - 4096))
        return data[: 8 + size] + rest[:place] + bad * 1024 + rest[place + 4096 :]
    if what == 4:
        return data + b"\0" * rng.choice([1, 8, 4096])
    fields = json.loads(header)
    names = [name for name in fields if name != "__metadata__"]
    name = rng.choice(names)
    entry = fields[name]
    what = rng.randrange(8)
    if what == 0:
        del fields[name]
    elif what == 1:
        fields[rng.choice(["", name + ".x", "../" + name, "\x1b[2J", "x" * 10_000])] = fields.pop(name)
    elif what == 2:
        entry["dtype"] = rng.choice(["F64", "F32", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "X", 3, None])
    elif what == 3 and entry["shape"]:
        axis = rng.randrange(len(entry["shape"]))
        entry["shape"][axis] = rng.choice(NUMBERS)
    elif what == 4:
        entry["shape"] = rng.choice([entry["shape"][::-1], entry["shape"] + [1], entry["shape"][1:], [], [0], [0, 1 << 60], [1 << 32, 1 << 32, 0]])
    elif what == 5:
        entry["data_offsets"] = rng.choice([[0, 0], [0, 1 << 62], [8, 4], [-1, 4], entry["data_offsets"][::-1], [0], [(1 << 64) - 8, (1 << 64) - 4]])
    elif what == 6:
        fields[rng.choice(names)] = entry
    else:
        text = change_json(rng, header.decode())
        return struct.pack("<Q", len(text)) + text + rest
    text = json.dumps(fields, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + rest


def png_chunks(data):
    place, chunks = 8, []
    while place + 12 <= len(data):
        size = struct.unpack(">I", data[place : place + 4])[0]
        chunks.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + size]))
        place += 12 + size
    return chunks


def png(chunks):
    rows = [struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(rows)


def change_png(rng, data):
    if not data.startswith(b"\x89PNG") or rng.random() < 0.3:
        return change_bytes(rng, data, 200)
    chunks = png_chunks(data)
    what = rng.randrange(6)
    place = rng.randrange(len(chunks))
    if what in (0, 1):
        fields = list(struct.unpack(">IIBBBBB", chunks[0][1]))
        field = rng.randrange(7)
        fields[field] = rng.choice([0, 1, 2, 3, 4, 8, 16, 255] if field > 1 else [0, 1, 16384, 16385, 65535, 1 << 24, (1 << 31) - 1, (1 << 32) - 1])
        chunks[0] = (b"IHDR", struct.pack(">IIBBBBB", *fields))
    elif what == 2:
        del chunks[place]
    elif what == 3:
        chunks[place:place] = [chunks[place]] * rng.choice([1, 500])
    elif what == 4:
        chunks[place] = (chunks[place][0], change_bytes(rng, chunks[place][1]))
    else:
        bomb = zlib.compress(b"\0" * rng.choice([1 << 20, 1 << 27]))
        chunks[-1:-1] = [rng.choice([(b"IDAT", bomb), (b"iCCP", b"x\0\0" + bomb), (b"zTXt", b"x\0\0" + bomb), (b"tEXt", b"A" * 1000)])]
    return png(chunks)


def change_wav(rng, data):
    if rng.random() < 0.4:
        return change_bytes(rng, data, 44)
    fields = list(struct.unpack("<HHIIHH", data[20:36]))
    field = rng.randrange(6)
    fields[field] = rng.choice([0, 1, 2, 3, 8, 24, 32, 64, 255, 256, 0xFFFE, 0xFFFF] + ([] if field in (0, 1, 4, 5) else [999, 1000, 768_000, 768_001, (1 << 32) - 1]))
    fmt = struct.pack("<HHIIHH", *fields)
    length = rng.choice([len(data) - 44] * 3 + [0, 1, len(data), (1 << 31), (1 << 32) - 1])
    return data[:20] + fmt + data[36:40] + struct.pack("<I", length) + data[44:]


def npy(shape, data, descr="<f4", fortran="False", text=None):
    text = text or "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (descr, fortran, "".join(f"{n}, " for n in shape))
    text += " " * ((64 - (10 + len(text) + 1) % 64) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", min(len(text), 65535)) + text.encode() + data


def npz(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data, method in members:
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=method, compresslevel=1)
    return out.getvalue()


def floats(*shape):
    count = math.prod(shape)
    return struct.pack(f"<{count}f", *[math.sin(i) for i in range(count)])


def change_npz(rng, data):
    if rng.random() < 0.3:
        # The directory stands at the end.
        return change_bytes(rng, data) if rng.random() < 0.3 else data[:-200] + change_bytes(rng, data[-200:])
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    arrays = {name: ((5, 4), floats(5, 4), {}) for name in "qkv"}
    name = rng.choice("qkv")
    what = rng.randrange(7)
    if what == 0:
        shape = tuple(rng.choice([0, 1, 4, 5, 1 << 24, 1 << 31, 1 << 32, 1 << 62, (1 << 64) - 1]) for _ in range(rng.randrange(6)))
        arrays[name] = (shape, arrays[name][1], {})
    elif what == 1:
        arrays[name] = ((5, 4), floats(5, 4), {"descr": rng.choice(["<f2", ">f4", "<f8", "<i4", "|b1", "<U3", "|O", "", "<f4" * 1000, "<c8"])})
    elif what == 2:
        arrays[name] = ((5, 4), floats(5, 4), {"text": rng.choice(["", "{", "{}", "{'shape': (" + "1," * 2000 + ")}", "{'descr': '<f4', 'fortran_order': True, 'shape': (5, 4)}", "(" * 9000, "{'descr': __import__('os').system('ls')}"])})
    elif what == 3:
        # Zeros that deflate well: of T that is too large, of another width, or just many.
        count = rng.choice([1 << 22, 1 << 26])
        shape = rng.choice([(count, 1), (count // 4, 4), (1, count), (count,)])
        arrays[name], method = (shape, bytes(4 * count), {}), zipfile.ZIP_DEFLATED
    elif what == 4:
        del arrays[name]
    elif what == 5:
        arrays[name] = ((5, 4), floats(5, 4)[: rng.randrange(80)], {})
    else:
        arrays["x" * rng.choice([1, 1000, 60_000])] = ((1,), floats(1), {})
    return npz([(key + ".npy", npy(shape, body, **more), method) for key, (shape, body, more) in arrays.items()])


def change_toml(rng, text):
    if rng.random() < 0.1:
        return change_bytes(rng, text.encode())
    lines = text.split("\n")
    rows = [i for i, line in enumerate(lines) if "=" in line and not line.lstrip().startswith("#")]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        place = rng.choice(rows)
        key, _, value = lines[place].partition("=")
        what = rng.randrange(8)
        if what == 0:
            lines[place] = ""
        elif what == 1:
            lines[place] += "\n" + lines[place]
        elif what == 2:
            lines[place] = f"{key}= {rng.choice(['[]', '{}', 'true', '1979-05-27', 'nan', 'inf', '-inf', chr(39) * 2, '[' * 200, '[' * 20000])}"
        elif what == 3:
            lines[place] = f"{key.rstrip()}.x ={value}"
        elif what == 4:
            lines[place] = f"{key}= {json.dumps(rng.choice(['', 'x', '../../x', '/dev/zero', 'a' * 5000]))}"
        else:
            lines[place] = f"{key}= {rng.choice(NUMBERS)}"
    return "\n".join(lines).encode()


# ---- Valid files ---------------------------------------------------------------------------------


def sound():
    samples = b"".join(struct.pack("<h", int(8000 * math.sin(i / 5) * math.exp(-i / 3000))) for i in range(4000))
    return b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + struct.pack("<I", len(samples)) + samples


def image(rows=28, columns=28):
    body = b"".join(b"\0" + bytes((r * c) % 256 for c in range(columns)) for r in range(rows))
    return png([(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(body)), (b"IEND", b"")])


def idx():
    return struct.pack(">BBBB3I", 0, 0, 8, 3, 2, 28, 28) + bytes(i % 256 for i in range(2 * 28 * 28))


# The verb of each model: its name, and what it is given.
MODELS = {
    "en-fr": ["translate", "They are here.", "--max-length", "12"],
    "zh-en": ["translate", "他在这里。", "--max-length", "12"],
    "en-fr-bahdanau": ["translate", "They are here.", "--max-length", "12"],
    "shakespeare": ["generate", "ROMEO:", "--max-new-tokens", "4"],
    "en-pos": ["tag", "They are here."],
    "stories": ["answer", "Where is John?", "--context", "John took the milk. John went to the hallway."],
    "digits": ["recognize", "SOUND"],
    "hull": ["point", "0 0 1 0 1 1 0 1 0.5 0.4"],
    "tsp": ["point", "0 0 1 0 1 1 0 1 0.5 0.4"],
    "clothes": ["classify", "--image", "IMAGE"],
}


class Kind:
    """A valid file, how it is changed, and the command that reads it. `{}` is the changed file;
    of a model's folder, the folder."""

    def __init__(self, name, data, change, command, folder=None, file=None, text=False, trains=False):
        self.name, self.data, self.change, self.command = name, data, change, command
        self.folder, self.file = folder, file
        self.text = text
        self.trains = trains

    def mutant(self, rng):
        new = self.change(rng, self.data.decode() if self.text else self.data)
        return new if isinstance(new, bytes) else new.encode()

    def write(self, to, data):
        """Puts the file where it is read; the rest of a model's folder is linked. Gives the
        command and the bytes of all files."""
        if self.folder is None:
            path = os.path.join(to, self.file)
            with open(path, "wb") as out:
                out.write(data)
            return [path if word == "{}" else word for word in self.command], len(data)
        place, total = os.path.join(to, "model"), len(data)
        os.makedirs(place)
        for name in os.listdir(self.folder):
            if name != self.file:
                source = os.path.join(self.folder, name)
                os.symlink(source, os.path.join(place, name))
                total += os.path.getsize(source)
        with open(os.path.join(place, self.file), "wb") as out:
            out.write(data)
        return [place if word == "{}" else word for word in self.command], total


def kinds(regard, home):
    """Every kind of file, made in the folder `home`."""
    files = {"SOUND": sound(), "IMAGE": image()}
    for name, data in files.items():
        with open(os.path.join(home, name), "wb") as out:
            out.write(data)
    found = []
    for model, verb in MODELS.items():
        folder = os.path.join(home, model)
        subprocess.run([regard, "models", "export", model, "--out", folder], check=True, capture_output=True)
        command = [os.path.join(home, word) if word in files else word for word in verb]
        for file in sorted(os.listdir(folder)):
            with open(os.path.join(folder, file), "rb") as source:
                data = source.read()
            if file.endswith(".safetensors"):
                for words in (command + ["--model", "{}"], ["inspect", "{}"]):
                    found.append(Kind(f"{model}/weights {words[0]}", data, change_safetensors, words, folder, file))
            elif file == "config.json":
                for words in (command + ["--model", "{}"], ["inspect", "{}"]):
                    found.append(Kind(f"{model}/config {words[0]}", data, change_json, words, folder, file, text=True))
            elif file.endswith(".json"):
                # Of vocabularies the rest is changed more often than the list of words.
                found.append(Kind(f"{model}/{file}", data, change_json, command + ["--model", "{}"], folder, file, text=True))
    dumped = lambda name, *sets: subprocess.run([regard, "train", name, "--dump-config", *sets], check=True, capture_output=True).stdout
    small = ["train.steps=2", "train.eval_every=2", "train.warmup=1", "data.valid=4", "data.test=4", "train.batch_tokens=100"]
    recipe = dumped_small(dumped, "hull-5", small)
    found.append(Kind("recipe train", recipe, change_toml, ["train", "{}", "--out", "RUN", "--memory", "200MB"], file="recipe.toml", text=True, trains=True))
    for name in ["multi30k-transformer", "sst2-words", "wikitext2-xlnet", "fashion-mnist-vit", "fsdd-ctc", "cora-gat", "babi", "squad-minilm"]:
        found.append(Kind(f"recipe {name}", dumped(name), change_toml, ["train", "{}", "--dump-config"], file="recipe.toml", text=True))
    arrays = npz([(f"{n}.npy", npy((5, 4), floats(5, 4)), zipfile.ZIP_DEFLATED) for n in "qkv"])
    header = {n: {"dtype": "F32", "shape": [5, 4], "data_offsets": [80 * i, 80 * i + 80]} for i, n in enumerate("qkv")}
    header = json.dumps(header).encode()
    tensors = struct.pack("<Q", len(header)) + header + floats(5, 4) * 3
    found += [
        Kind("npz attend", arrays, change_npz, ["attend", "{}", "--mask", "causal"], file="x.npz"),
        Kind("safetensors attend", tensors, change_safetensors, ["attend", "{}"], file="x.safetensors"),
        Kind("png classify", image(), change_png, ["classify", "--image", "{}"], file="x.png"),
        Kind("large png classify", image(300, 200), change_png, ["classify", "--image", "{}"], file="x.png"),
        Kind("idx classify", idx(), lambda rng, data: change_bytes(rng, data, 20), ["classify", "--image", "{}"], file="x.idx"),
        Kind("wav recognize", sound(), change_wav, ["recognize", "{}"], file="x.wav"),
        Kind("wav recognize --stream", sound(), change_wav, ["recognize", "{}", "--stream"], file="x.wav"),
        Kind("points", b"0 0 1 0 1 1 0 1 0.5 0.4\n0.1 0.2 0.3 0.4 0.9 0.1 0.7 0.7\n", change_lines, ["point", "--file", "{}"], file="x.txt", text=True),
        Kind("vectors", b"".join(b"word%d %f %f %f\n" % (i, i / 7, i / 3, -i) for i in range(1, 30)), change_lines, ["embed", "--words", "word3", "--nearest", "2", "--vectors", "{}"], file="x.txt", text=True),
        Kind("pairs eval", b"They are here.\tIls sont l\xc3\xa0.\nGo.\tVa !\n", change_lines, ["eval", "--model", os.path.join(home, "en-fr"), "--data", "{}"], file="x.tsv", text=True),
        Kind("text score", "They are here.\nWho knows? 中\n".encode(), change_lines, ["eval", "--model", os.path.join(home, "shakespeare"), "--data", "{}"], file="x.txt", text=True),
    ]
    gguf = os.path.join(home, "shakespeare.gguf")
    made = [regard, "quantize", os.path.join(home, "shakespeare"), "--to", "gguf:F16", "--out", gguf]
    subprocess.run(made, check=True, capture_output=True)
    with open(gguf, "rb") as source:
        command = ["generate", "ROMEO:", "--max-new-tokens", "2", "--model", "{}"]
        found.append(Kind("gguf generate", source.read(), change_gguf, command, file="x.gguf"))
    every = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
    for name in ["llama-ForCausalLM", "qwen3-ForCausalLM", "gemma3_text-ForCausalLM", "gpt2-LMHeadModel", "bert-Model"]:
        with open(os.path.join(every, "gguf", f"{name}.gguf"), "rb") as source:
            found.append(Kind(f"gguf {name} inspect", source.read(), change_gguf, ["inspect", "{}"], file="x.gguf"))
    fixtures = os.path.join(every, "pictures")
    for name in ["photo.jpg", "progressive.jpg", "palette.png"]:
        with open(os.path.join(fixtures, name), "rb") as source:
            found.append(Kind(f"{name} classify", source.read(), change_png, ["classify", "--image", "{}"], file=name))
    return found


def dumped_small(dumped, name, sets):
    """A recipe with those of the small values that it takes."""
    taken = []
    for each in sets:
        try:
            dumped(name, *[word for one in taken + [each] for word in ("--set", one)])
            taken.append(each)
        except subprocess.CalledProcessError:
            pass
    return dumped(name, *[word for one in taken for word in ("--set", one)])


# ---- Running -------------------------------------------------------------------------------------


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (CAP, CAP))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(regard, words, folder, trains=False):
    """Runs a command: its exit code or minus its signal, seconds of the processor, peak in bytes,
    and standard error. The seconds of a training that is interrupted are those that it takes to
    end, and the exit code is 0 if it ended as it should."""
    words = [os.path.join(folder, "run") if word == "RUN" else word for word in words]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "RUST_BACKTRACE": "0"}
    with open(os.path.join(folder, "stderr"), "w+b") as errors:
        child = subprocess.Popen(
            [regard, *words, "--threads", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors, cwd=folder, env=environment, preexec_fn=limit,
        )
        timer = threading.Timer(WALL, child.kill)
        timer.start()
        asked = []

        def interrupt():
            asked.append(time.monotonic())
            try:
                os.kill(child.pid, signal.SIGINT)
            except ProcessLookupError:
                pass

        polite = threading.Timer(SECONDS, interrupt)
        if trains:
            polite.start()
        _, status, usage = os.wait4(child.pid, 0)
        late = not timer.is_alive()
        timer.cancel()
        polite.cancel()
        child.returncode = 0
        errors.seek(0)
        message = errors.read(1 << 20)
    code = os.waitstatus_to_exitcode(status)
    if asked and not late:
        code = {130: 0, 0: 0}.get(code, -1)
        return code, time.monotonic() - asked[0], usage.ru_maxrss * 1024, message
    return code, usage.ru_utime + usage.ru_stime + (WALL if late else 0), usage.ru_maxrss * 1024, message


def judge(code, seconds, peak, message, most):
    """What is wrong with how a command ended."""
    if code == 101 or b"panicked at" in message:
        return "panic"
    if seconds > SECONDS:
        return "time"
    if peak > most:
        return "memory"
    if code not in (0, 1, 2):
        return "signal"
    # What succeeds may say much, line by line; an error must fit on a screen.
    longest = max(map(len, message.split(b"\n"))) if code == 0 else len(message)
    if code == 2 and not message.strip() or longest > LONGEST_MESSAGE:
        return "message"
    return None


def case(arguments, all_kinds, baselines, number):
    """One case, by its number."""
    rng = random.Random(f"{arguments.seed}/{number}")
    kind = all_kinds[rng.randrange(len(all_kinds))]
    folder = tempfile.mkdtemp(prefix="regard-mutate-")
    try:
        command, size = kind.write(folder, kind.mutant(rng))
        code, seconds, peak, message = run(arguments.regard, command, folder, kind.trains)
        most = baselines[kind.name] + 2 * size + OVER
        found = judge(code, seconds, peak, message, most)
        if found:
            kept = os.path.join(arguments.keep, f"{number}-{found}")
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, symlinks=True)
            with open(os.path.join(kept, "command.txt"), "w") as out:
                words = " ".join(word.replace(folder, kept) for word in command)
                out.write(f"case {number} of seed {arguments.seed}: {kind.name}\n{arguments.regard} {words} --threads 1\n"
                          f"exit {code}, {seconds:.1f} s, peak {peak >> 20} MB of at most {most >> 20} MB\n")
        return kind.name, code, seconds, found, number, message[:300]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def worker(arguments, all_kinds, baselines, numbers, results):
    for number in numbers:
        try:
            results.put(case(arguments, all_kinds, baselines, number))
        except Exception as error:  # a mistake in this program must not look like a clean case
            results.put(("this program", 0, 0.0, "broken", number, repr(error).encode()))
    results.put(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regard", default="target/release/regard", help="the program")
    parser.add_argument("--count", type=int, default=10_000, help="cases to run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="commands at once")
    parser.add_argument("--kinds", default="", help="only kinds whose names contain this")
    parser.add_argument("--keep", default="mutants", help="folder for what failed")
    parser.add_argument("--only", type=int, help="run one case again, by its number")
    arguments = parser.parse_args()
    arguments.regard = os.path.abspath(arguments.regard)
    arguments.keep = os.path.abspath(arguments.keep)
    os.makedirs(arguments.keep, exist_ok=True)
    home = os.path.join(arguments.keep, "valid")
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    all_kinds = [kind for kind in kinds(arguments.regard, home) if arguments.kinds in kind.name]
    if not all_kinds:
        sys.exit(f"no kind has {arguments.kinds!r} in its name")

    baselines, start = {}, time.time()
    plain = run(arguments.regard, ["variants"], home)[2]
    for kind in all_kinds:
        folder = tempfile.mkdtemp(prefix="regard-mutate-")
        command, _ = kind.write(folder, kind.data)
        code, seconds, peak, message = run(arguments.regard, command, folder)
        shutil.rmtree(folder)
        if code != 0:
            sys.exit(f"{kind.name}: the valid file fails with exit code {code}: {message.decode(errors='replace')}")
        baselines[kind.name] = max(plain, peak)
    print(f"{len(all_kinds)} kinds; baseline of `regard variants` {plain >> 20} MB, of valid files "
          f"{min(baselines.values()) >> 20} to {max(baselines.values()) >> 20} MB")

    numbers = [arguments.only] if arguments.only is not None else range(arguments.count)
    results = multiprocessing.Queue()
    jobs = [multiprocessing.Process(target=worker, args=(arguments, all_kinds, baselines, numbers[i :: arguments.jobs], results)) for i in range(arguments.jobs)]
    [job.start() for job in jobs]
    counts, findings, slowest, done, left = collections.defaultdict(collections.Counter), [], 0.0, 0, len(jobs)
    while left:
        result = results.get()
        if result is None:
            left -= 1
            continue
        name, code, seconds, found, number, message = result
        done += 1
        slowest = max(slowest, seconds)
        counts[name][found or str(code)] += 1
        if found:
            findings.append(result)
            print(f"case {number}: {found}: {name}: exit {code}, {seconds:.1f} s: {message.decode(errors='replace')!r}", flush=True)
        elif done % 500 == 0:
            print(f"{done} cases, {len(findings)} findings, {time.time() - start:.0f} s", flush=True)

    columns = ["0", "1", "2", "panic", "signal", "time", "memory", "message", "broken"]
    print("\n| kind | runs | " + " | ".join(columns) + " |\n|---|" + "--:|" * (len(columns) + 1))
    total = collections.Counter()
    for name in sorted(counts):
        total.update(counts[name])
        print(f"| {name} | {sum(counts[name].values())} | " + " | ".join(str(counts[name][c] or "") for c in columns) + " |")
    print(f"| all | {sum(total.values())} | " + " | ".join(str(total[c] or "") for c in columns) + " |")
    print(f"\nseed {arguments.seed}, {done} cases in {time.time() - start:.0f} s, slowest {slowest:.1f} s, {len(findings)} findings"
          + (f", kept in {arguments.keep}" if findings else ""))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
