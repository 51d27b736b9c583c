"""Checks the licence of every dependency against the list in deny.toml, in a second.

`.ci/full` asks cargo-deny as well, which also reads the licence files.
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LICENCES = tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]
ALLOWED = set(LICENCES["allow"])
CLARIFIED = {row["name"]: row["expression"] for row in LICENCES.get("clarify", [])}


def allowed(expression):
    """Whether an SPDX expression can be satisfied with the allowed licences."""
    text = expression.replace("/", " OR ")
    names = re.findall(r"[A-Za-z0-9.+-]+(?: WITH [A-Za-z0-9.+-]+)?", text)
    words = [name for name in names if name not in ("OR", "AND")]
    python = re.sub(r"[A-Za-z0-9.+-]+(?: WITH [A-Za-z0-9.+-]+)?",
                    lambda m: {"OR": "or", "AND": "and"}.get(m[0], str(m[0] in ALLOWED)), text)
    return bool(words) and eval(python, {"__builtins__": {}})  # Only or, and, True, False, ( ).


def main():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    # The lock file also has optional packages that nothing turns on.
    nodes = {node["id"]: node["dependencies"] for node in found["resolve"]["nodes"]}
    used, new = set(), set(found["workspace_members"])
    while new:
        used |= new
        new = {other for one in new for other in nodes[one]} - used
    packages = [package for package in found["packages"] if package["id"] in used]
    wrong = [f"{p['name']} {p['version']}: {p['license']}" for p in packages
             if not allowed(p["license"] or CLARIFIED.get(p["name"], ""))]
    print(f"{len(packages)} packages, {len(wrong)} with a licence that deny.toml lacks")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
