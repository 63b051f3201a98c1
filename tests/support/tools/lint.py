#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy over every C file of ours that a build directory compiles; one case a file."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def files(build):
    entries = json.loads((ROOT / build / 'compile_commands.json').read_text())
    found = {(pathlib.Path(entry['directory']) / entry['file']).resolve() for entry in entries}
    return sorted(path for path in found if path.suffix == '.c' and ROOT in path.parents)


def lint(build, path):
    """Returns what clang-tidy reports about one file; empty if it reports nothing."""
    result = subprocess.run(
        ['clang-tidy', '--quiet', '-p', build, '--extra-arg=-Wno-unknown-warning-option',
         str(path)], cwd=ROOT, capture_output=True, text=True, check=False)
    return '' if result.returncode == 0 else result.stdout + result.stderr


def shorten(complaint):
    """The errors without the paths that lead to them."""
    lines = [line for line in complaint.splitlines() if ' error: ' in line]
    return '\n'.join(line.replace(f'{ROOT}/', '') for line in lines) or complaint


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else 'build'
    chosen = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or files(build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda path: lint(build, path), chosen))
    for complaint in complaints:
        if complaint:
            print(complaint if len(chosen) == 1 else shorten(complaint))
    failed = sum(1 for complaint in complaints if complaint)
    print(f'cases: {len(chosen) - failed} passed, {failed} failed, 0 skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
