#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
fuzz.py BUILD [TARGET [SECONDS]]: builds the targets and lets libFuzzer look for inputs that break
a target, or each of them in turn. What it finds of interest stays in BUILD/found/TARGET; a file in
tests/fuzz/corpus is replayed by every test run.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
DONE = re.compile(r'stat::number_of_executed_units:\s*(\d+)')


def run(build, target, seconds):
    """Runs one target; returns the number of executions, or None if it broke."""
    found = build / 'found' / target
    found.mkdir(parents=True, exist_ok=True)
    process = subprocess.run(
        [build / 'tests/fuzz' / f'fuzz_{target}', f'-max_total_time={seconds}', '-max_len=4096',
         '-timeout=20',
         '-print_final_stats=1', '-verbosity=1', f'-artifact_prefix={found}/crash-', found,
         ROOT / 'tests/fuzz/corpus' / target],
        stderr=subprocess.PIPE, text=True, check=False)
    count = DONE.search(process.stderr)
    if process.returncode != 0 or count is None:
        print(process.stderr[-6000:], file=sys.stderr)
        return None
    return int(count.group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('target', nargs='?')
    parser.add_argument('seconds', nargs='?', type=int, default=60)
    chosen = parser.parse_args()
    build = (ROOT / chosen.build).resolve()
    targets = sorted(path.stem[5:] for path in (ROOT / 'tests/fuzz').glob('fuzz_*.c'))
    if chosen.target is not None and chosen.target not in targets:
        parser.error(f'no target {chosen.target}; there are {", ".join(targets)}')
    targets = [chosen.target] if chosen.target else targets
    subprocess.run(['ninja', '-C', build, *(f'tests/fuzz/fuzz_{target}' for target in targets)],
                   stdout=sys.stderr, check=True)
    broken = 0
    for target in targets:
        executions = run(build, target, chosen.seconds)
        broken += executions is None
        print(f'{target}: {"BROKEN" if executions is None else f"{executions} executions"}',
              flush=True)
    sys.exit(1 if broken else 0)


if __name__ == '__main__':
    main()
