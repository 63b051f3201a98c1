#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Kills processes of sessions at random instants, with every provider, and counts what is left: it
must be nothing. The seed repeats every stint.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import secrets
import subprocess
import sys
import time

import places
from stint import Result, Stint

KILLS_OF_A_STINT = 30
AT_ONCE = 6
# This much memory, and this much more per kill, does not count as a leak: caches fill, and an arena
# is not given back in pieces. Nor do this few open files: they belong to work under way between two
# turns.
GROWTH_BYTES, GROWTH_OF_A_KILL = 8 << 20, 64 << 10
GROWTH_FILES, KILLS_OF_A_FILE = 4, 4


STINT_SECONDS = 7200  # a stint that takes longer hangs


def run(job):
    """Runs a stint in a process of its own, so that stints do not wait for each other."""
    provider, seed, kills = job
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, '-B', str(pathlib.Path(__file__).resolve()), '--stint', provider, seed,
             str(kills)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=STINT_SECONDS)
        return Result.from_line(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        result = Result(provider, seed)
        said = '' if isinstance(error, subprocess.TimeoutExpired) else done.stderr[-2000:]
        result.wrong.append(f'{provider}, seed {seed}: the stint told nothing: {error} {said}')
        result.seconds = time.monotonic() - begin
        return result


def jobs(kills, names, seed):
    """(provider, seed, kills) of each stint, spread evenly over the providers."""
    stints = max(len(names), -(-kills // KILLS_OF_A_STINT))
    return [(names[number % len(names)], f'{seed}.{number}' if stints > 1 else seed,
             kills // stints + (number < kills % stints)) for number in range(stints)]


def growth(results):
    """Lives of brokers in which memory or the number of open files grew too much."""
    return [f'{result.provider}, seed {result.seed}: a broker that lived through {kills} kills '
            f'holds {memory} bytes and {len(files)} files more: {files}'
            for result in results for kills, memory, files in result.lives
            if len(files) > max(GROWTH_FILES, kills // KILLS_OF_A_FILE)
            or memory > GROWTH_BYTES + kills * GROWTH_OF_A_KILL]


def table(results):
    """Prints the kills of each provider, and what was left."""
    for name in dict.fromkeys(result.provider for result in results):
        own = [result for result in results if result.provider == name]
        kills, left = collections.Counter(), collections.Counter()
        for result in own:
            for name_of_kill, number in result.kills.items():
                kills[name_of_kill.split()[-1]] += number
            left.update(result.left)
        lives = [life for result in own for life in result.lives]
        yield (f'{name}: {sum(kills.values())} kills in {len(own)} stints, '
               f'{sum(result.brokers for result in own)} brokers; '
               + ', '.join(f'{victim} {number}' for victim, number in sorted(kills.items())))
        yield '  left: ' + ', '.join(f'{what} {number}' for what, number in left.items())
        if lives:
            kills, memory, files = (max(column) for column in zip(
                *((life[0], life[1], len(life[2])) for life in lives)))
            yield (f'  {len(lives)} brokers that lived on, {kills} kills the longest: memory at '
                   f'most {memory // 1024} KiB more, open files {files} more')


def soak(kills, names, seed, at_once, say=print):
    """Runs the stints; returns the number of things that are wrong."""
    begin = time.monotonic()
    results = []
    say(f'{kills} kills on {", ".join(names)}, seed {seed}')
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in concurrent.futures.as_completed(
                [pool.submit(run, job) for job in jobs(kills, names, seed)]):
            result = done.result()
            results.append(result)
            say(f'{sum(one.count for one in results)}: {result.provider}, seed {result.seed}: '
                f'{result.count} kills, {result.seconds:.0f} s, {len(result.wrong)} wrong')
            for text in result.wrong:
                say('  ' + text.replace('\n', '\n  '))
    for line in [*table(results), *growth(results)]:
        say(line)
    wrong = sum(len(result.wrong) for result in results) + len(growth(results))
    made = sum(result.count for result in results)
    left = sum(sum(result.left.values()) for result in results)
    say(f'soak: {made} of {kills} kills, {left} left, {wrong} wrong, '
        f'{time.monotonic() - begin:.0f} s, seed {seed}')
    return wrong + (made < kills)


def main():
    if sys.argv[1:2] == ['--stint']:
        provider, seed, kills = sys.argv[2:]
        print(Stint(provider, seed, int(kills)).go().line())
        return
    names = places.that_can_be_started()
    parser = argparse.ArgumentParser(prog='./dev soak', description=__doc__)
    parser.add_argument('kills', nargs='?', type=int, default=1000)
    parser.add_argument('--seed', default=secrets.token_hex(4))
    parser.add_argument('--only', choices=names, action='append')
    parser.add_argument('--at-once', type=int, default=AT_ONCE)
    options = parser.parse_args()
    wrong = soak(options.kills, options.only or names, options.seed, options.at_once,
                 lambda line: print(line, flush=True))
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
