#!/usr/bin/env python3
"""Plants the faults of faults.toml one after the other in a copy of the tree, and runs against each the test
that is to catch it, or all tests of the crates where the list names none.

A fault that no test catches, that does not compile, or whose text is not there exactly once is an error.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "planted-faults"
TREE = WORK / "tree"

# Seconds of a test that is to catch a fault, and of all tests of a crate. A hang counts as caught.
TEST_SECONDS_MAX = 300
CRATE_SECONDS_MAX = 600

# Crates whose tests see a fault of the crate, the nearest first.
ABOVE = {
    "model": ["model", "sim", "live"],
    "array": ["array", "sim"],
    "freeblock": ["freeblock", "host", "sim", "live"],
    "host": ["host", "sim", "live"],
    "nbd": ["nbd", "live"],
    "live": ["live", "cli"],
}


def copy_tree():
    """Copies what is tracked or new. Files that are the same stay, so that cargo builds only what changed."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    there = {str(path.relative_to(TREE)) for path in TREE.rglob("*") if path.is_file()}
    for name in there - files:
        (TREE / name).unlink()
    for name in files:
        source, copy = ROOT / name, TREE / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)


def cargo(args, seconds):
    """Output and exit code; no code after a hang."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(WORK / "target")}
    process = subprocess.Popen(["cargo", "test", "--locked", "--color=never", *args], cwd=TREE, env=environment,
                               text=True, errors="replace", start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output = process.communicate(timeout=seconds)[0]
        return output, process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0], None


def failed(output):
    """Tests that failed, each as target and name."""
    target, names = "?", []
    for line in output.splitlines():
        if running := re.match(r" +Running .*/(\w+)-[0-9a-f]+\)", line):
            target = running[1]
        elif test := re.match(r"test (\S+) .*FAILED", line):
            names.append(f"{target} {test[1]}")
    return names


def target_args(test):
    package, target, _ = test.split()
    return ["--package", package, *(["--lib"] if target == "lib" else ["--test", target])]


def ensure_built(args, what):
    output, code = cargo([*args, "--no-run"], None)
    if code != 0:
        sys.exit(f"{what}: does not compile\n{output}")


def check_named_test(fault):
    """Whether the test that the list names catches the fault, and how."""
    args = target_args(fault["test"])
    ensure_built(args, fault["name"])
    code = cargo([*args, "--", "--exact", fault["test"].split()[2]], TEST_SECONDS_MAX)[1]
    return {0: "NOT CAUGHT", None: "caught, hangs"}.get(code, "caught")


def find_tests(fault):
    """What catches the fault, in the nearest crate that has a test for it."""
    crate = fault["file"].split("/")[1]
    for number, above in enumerate(ABOVE[crate]):
        package = ["--package", f"freewheel-{above}", "--tests"]
        ensure_built(package, fault["name"])
        output, code = cargo(package, CRATE_SECONDS_MAX)
        if code != 0:
            return f"caught in {above}: " + ", ".join(failed(output) or output.splitlines()[-3:])
    return "NOT CAUGHT"


def plant(fault, check):
    path = TREE / fault["file"]
    text = path.read_text()
    path.write_text(text.replace(fault["search"], fault["replace"]))
    try:
        return check(fault)
    finally:
        path.write_text(text)


def ensure_once(faults):
    for fault in faults:
        count = (ROOT / fault["file"]).read_text().count(fault["search"])
        if count != 1:
            sys.exit(f"{fault['name']}: {fault['file']} has its text {count} times, not once:\n{fault['search']}")


def ensure_green(faults):
    """Without faults each test passes, or its failure would be no evidence."""
    by_target = {}
    for fault in faults:
        by_target.setdefault(tuple(target_args(fault["test"])), set()).add(fault["test"].split()[2])
    for args, names in by_target.items():
        ensure_built(args, "without a fault")
        output, code = cargo([*args, "--", "--exact", *sorted(names)], TEST_SECONDS_MAX)
        if code != 0 or f" {len(names)} passed" not in output:
            sys.exit(f"without a fault {len(names)} tests are to pass:\n{output}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="of names or files of faults; all faults without")
    asked = parser.parse_args()
    listed = tomllib.loads((Path(__file__).parent / "faults.toml").read_text())["fault"]
    ensure_once(listed)
    faults = [fault for fault in listed
              if not asked.parts or any(part in fault["name"] or part in fault["file"] for part in asked.parts)]
    copy_tree()
    ensure_green([fault for fault in faults if fault["test"]])
    missed = 0
    for fault in faults:
        found = plant(fault, check_named_test if fault["test"] else find_tests)
        missed += not found.startswith("caught")
        print(f"{fault['name']:60} {found:15} {fault['test']}", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} caught")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
