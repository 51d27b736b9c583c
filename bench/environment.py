"""A virtual environment next to this file, with the other libraries and the wheel of this repository."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE / ".venv" / "bin" / "python"
PEERS = {
    "numpy": "numpy",
    "torch": "torch",
    "maturin": "maturin",
    "torch-geometric": "torch_geometric",
    "transformers": "transformers",
    "peft": "peft",
    "ctranslate2": "ctranslate2",
    "tokenizers": "tokenizers",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "gguf": "gguf",
}


def run(*command):
    subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr)


def missing():
    """Names of libraries that the environment does not have."""
    code = (
        "import importlib.util as u, sys;"
        "print(' '.join(n for n in sys.argv[1:] if u.find_spec(n) is None))"
    )
    command = [PYTHON, "-c", code, *PEERS.values()]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [name for name, module in PEERS.items() if module in found]


def enter(threads, build=True):
    """Goes on in the environment, which is made and filled if it is not there."""
    if os.environ.get("REGARD_BENCH") == "inside":
        return
    if not PYTHON.exists():
        run(sys.executable, "-m", "venv", HERE / ".venv")
    if wanted := missing():
        run(PYTHON, "-m", "pip", "install", *wanted)
    if build:
        run(PYTHON, "-m", "pip", "install", "--quiet", HERE.parent / "python")
    # Libraries that read their number of threads when they are loaded.
    counts = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    environment = {**os.environ, **counts, "REGARD_BENCH": "inside"}
    os.execve(PYTHON, [str(PYTHON), *sys.argv], environment)
