#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Runs every test and counts the cases: the cmocka tests of each program, the methods of each Python
file, the rules of each check; a program that prints no count of its own is one case. A program
that ends badly without naming a failed case counts as one failed.

The last line is "N passed, N failed", the exit status 1 where something failed. A program that
failed beside others is run once more alone; where it passes then it is named as unsteady. What a
test skipped, because it cannot be shown here (as root, under valgrind), is named above it and
counted as neither.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]

# The plain run is all of it. Under the sanitizers those are left out that take minutes and whose
# code others of the list run as well; under valgrind those that take half a minute, that wait for
# other programs above all, or whose deadlines real servers keep.
NOT_UNDER_ASAN = [
    'bench', 'conformance-daytona', 'conformance-piped*', 'conformance-remapped',
    'conformance-scripted', 'conformance-ssh*', 'daytona-account', 'daytona-api',
    'daytona-gateway', 'daytona-gateway_user', 'daytona-questions',
    'daytona-faults', 'daytona-killed*', 'daytona-life', 'daytona-lost', 'daytona-many',
    'daytona-recordings', 'daytona-sdk', 'daytona-stand_in', 'daytona-test_provider',
    'integration-children_killed', 'integration-commands_killed', 'integration-deletions',
    'integration-git_moves', 'integration-repositories',
    'integration-kill_matrix', 'integration-pause', 'integration-recovery',
    'integration-rsync_killed',
    'integration-ssh_*', 'integration-sync_cut', 'integration-sync_killed',
    'integration-sync_rsync', 'integration-turns', 'unit-transport_rsync',
    'integration-test_provider', 'interop-daytona_pair', 'interop-reference_*',
    'interop-ssh_pair', 'soak-short',
    'unit-ssh_exec*-libssh2', 'unit-ssh_exec*-openssh', 'unit-ssh_stress-openssh',
]
NOT_UNDER_VALGRIND = [
    'unit-daytona_api_secret',  # reads all the memory there is
    'unit-apply_saved', 'unit-json_memory', 'unit-process_kill', 'unit-ssh_apart',
    'unit-ssh_clients',
    'unit-ssh_exec*', 'unit-ssh_host', 'unit-ssh_libssh2*', 'unit-ssh_openssh',
    'unit-ssh_stress*', 'unit-target_refused', 'unit-transport_git*', 'unit-transport_rsync*',
    'unit-tree_view',
]

# The worker pool; and, of the whole, those in which it and the loop work at the same things.
UNDER_TSAN = ['unit-pool', 'unit-pool_end', 'unit-pool_left']
ALSO_UNDER_TSAN = ['unit-keeper', 'unit-record_saver', 'unit-store_prune', 'unit-workspace']

# A third of these is run each day: they take long, and show once more, in a harder way or for
# another client, what those show that are run each time. Some others make a part of their cases a
# day by themselves (tests/integration/case.py, tests/conformance/main.c).
PARTS = 3
IN_TURN = [
    'bench', 'daytona-faults', 'daytona-killed', 'daytona-life', 'daytona-lost', 'daytona-many',
    'integration-children_killed', 'integration-commands_killed', 'integration-kill_matrix',
    'integration-pause', 'integration-ssh_sizes', 'interop-daytona_pair',
    'interop-reference_restore', 'interop-ssh_pair', 'soak-short', 'unit-apply_saved',
    'unit-ssh_exec*-openssh', 'unit-ssh_exec*-apart', 'unit-ssh_exec*-pipe*',
]
IN_TURN_UNDER_ASAN = [
    'conformance-*', 'daytona-*', 'integration-*', 'interop-*', 'soak-*', 'unit-apply_*',
    'unit-process_kill', 'unit-ssh_*', 'unit-sync_random', 'unit-transport_*',
]
IN_TURN_UNDER_VALGRIND = ['unit-*']

LONGEST_SHOWN = 12

CASES = re.compile(r'^cases: (\d+) passed, (\d+) failed, (\d+) skipped$', re.M)
CMOCKA_PASSED = re.compile(r'^\[  PASSED  \] (\d+) test', re.M)
CMOCKA_FAILED = re.compile(r'^\[  FAILED  \] (?:.*: )?(\d+) test', re.M)
CMOCKA_SKIPPED = re.compile(r'^\[  SKIPPED \] (?:.*: )?(\d+) test', re.M)
SKIPPED_NAME = re.compile(r"^\[ RUN      \] .*\n\[  SKIPPED \] (\w+)|^(\w+) .*\.\.\. skipped", re.M)
CMOCKA_RUNS = re.compile(r'^\[==========\] .*Running (\d+) test', re.M)


class Count:
    def __init__(self):
        self.passed = self.failed = 0
        self.troubles = []
        self.skipped = []
        self.unsteady = []

    def add(self, title, counted, text):
        passed, failed, skipped = counted
        self.passed += passed
        self.failed += failed
        if failed:
            self.troubles.append(f'{title}\n{text[-6000:]}')
        if skipped:
            names = SKIPPED_NAME.findall(text)
            self.skipped.append(f'{title}: {", ".join(sum(names, ())).strip(", ") or skipped}')


def total(pattern, text):
    return sum(int(number) for number in pattern.findall(text))


def count_cases(result, text):
    """(passed, failed, skipped) of one program's output."""
    ours = CASES.findall(text)
    if ours:
        passed, failed, skipped = (sum(map(int, column)) for column in zip(*ours))
    elif CMOCKA_RUNS.search(text):
        passed = total(CMOCKA_PASSED, text)
        failed, skipped = total(CMOCKA_FAILED, text), total(CMOCKA_SKIPPED, text)
    else:
        passed, failed, skipped = int(result == 'OK'), 0, int(result == 'SKIP')
    if result not in ('OK', 'SKIP', 'EXPECTEDFAIL') and failed == 0:
        failed = 1
    return passed, failed, skipped


def run_meson(title, build, env, *arguments):
    """Runs meson's tests of a build directory: the entries of its log."""
    base = 'testlog-' + re.sub(r'\W+', '-', title)
    folder = ROOT / build / 'meson-logs'
    for path in folder.glob(f'{base}*.json'):
        path.unlink()
    subprocess.run(['meson', 'test', '-C', build, '--no-rebuild', '--logbase', base, *arguments],
                   cwd=ROOT, env=env, check=False, stdout=subprocess.DEVNULL)
    # With a wrapper meson puts its name into the log's.
    logs = sorted(folder.glob(f'{base}*.json'), key=os.path.getmtime)
    entries = [json.loads(line) for line in logs[-1].read_text().splitlines()] if logs else []
    for path in logs:
        path.unlink()
    return entries


def names_of(build, suite, left_out):
    """The tests of a suite (None: of all) but for those that a pattern names."""
    told = subprocess.run(['meson', 'introspect', '--tests', build], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout
    return [test['name'] for test in json.loads(told)
            if (suite is None or f'acp-broker:{suite}' in test['suite'])
            and not matches(test['name'], left_out)]


def longest(entries):
    """The programs that took longest beside the others, with their seconds."""
    ordered = sorted(entries, key=lambda entry: entry['duration'], reverse=True)
    return ', '.join(f'{entry["name"].split(" / ")[-1]} {entry["duration"]:.0f}'
                     for entry in ordered[:LONGEST_SHOWN])


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def todays(names, in_turn):
    """The names but for those in turn whose day it is not."""
    part = os.environ.get('ACP_PART')
    if part is None:
        return names
    waiting = [name for name in names if matches(name, in_turn)]
    todays_own = waiting[int(part) % PARTS::PARTS]
    return [name for name in names if name not in waiting or name in todays_own]


def text_of(entry):
    return entry.get('stdout', '') + '\n' + entry.get('stderr', '')


def second_run(count, title, build, env, entry, arguments):
    """
    A program that failed is run once more, with nothing beside it. One that passes then counts as
    passed and is named as unsteady at the end, with what it said at first.
    """
    name = entry['name'].split(' / ')[-1]
    again = run_meson(f'{title} again', build, env, '--num-processes', '1', *arguments, name)
    if len(again) != 1 or again[0]['result'] != 'OK':
        return entry
    count.unsteady.append(f'{title}: {name}\n{text_of(entry)[-3000:]}')
    return again[0]


def meson_test(count, title, build, *arguments, names=(), **variables):
    """Runs meson's tests of a build directory, or those named, and adds up its log."""
    started = time.monotonic()
    before = (count.passed, count.failed)
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE='1', **variables)
    entries = run_meson(title, build, env, *arguments, *names)
    if not entries:
        count.add(title, (0, 1, 0), 'meson test ran nothing')
    for entry in entries:
        if entry['result'] not in ('OK', 'SKIP', 'EXPECTEDFAIL'):
            entry = second_run(count, title, build, env, entry, arguments)
        text = text_of(entry)
        count.add(f'{title}: {entry["name"]}: {entry["result"]}',
                  count_cases(entry['result'], text), text)
    print(f'{title}: {count.passed - before[0]} passed, {count.failed - before[1]} failed '
          f'({time.monotonic() - started:.0f} s)', flush=True)
    print(f'longest in {title}: {longest(entries)}', flush=True)


def run_program(count, title, *argv):
    started = time.monotonic()
    result = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    text = result.stdout + '\n' + result.stderr
    counted = count_cases('OK' if result.returncode == 0 else 'FAIL', text)
    count.add(title, counted, text)
    print(f'{title}: {counted[0]} passed, {counted[1]} failed '
          f'({time.monotonic() - started:.0f} s)', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default='build')
    parser.add_argument('--asan', default='build-asan')
    parser.add_argument('--tsan', default='build-tsan')
    parser.add_argument('--only', action='append',
                        choices=('build', 'asan', 'valgrind', 'tsan', 'checks', 'lint'))
    parser.add_argument('--whole', action='store_true',
                        help='under the sanitizers and valgrind, too, all that there is')
    chosen = parser.parse_args()
    stages = chosen.only or ['checks', 'build', 'asan', 'valgrind', 'tsan']
    not_asan, not_valgrind = ([], []) if chosen.whole else (NOT_UNDER_ASAN, NOT_UNDER_VALGRIND)
    python = [sys.executable, '-B']
    tools = ROOT / 'tests' / 'tools'
    # Most of these programs wait, for deadlines and for each other: one more than there are CPUs.
    beside = ('--num-processes', str((os.cpu_count() or 1) + 1))
    count = Count()
    if 'checks' in stages:
        run_program(count, 'layers', *python, str(tools / 'check_layers.py'))
        run_program(count, 'style', *python, str(tools / 'check_style.py'))
    if 'lint' in stages:
        run_program(count, 'lint', *python, str(tools / 'lint.py'), chosen.build)
    if chosen.whole:
        os.environ.pop('ACP_PART', None)
    else:
        os.environ.setdefault('ACP_PART', str(int(time.time()) // 86400 % PARTS))
        print(f'part {os.environ["ACP_PART"]} of 0 to {PARTS - 1} of what takes longest '
              '(ACP_PART=N chooses one, --whole takes all)', flush=True)
    if 'build' in stages:
        meson_test(count, 'tests', chosen.build, *beside,
                   names=todays(names_of(chosen.build, None, []), IN_TURN))
    if 'asan' in stages:
        meson_test(count, 'tests under ASan and UBSan', chosen.asan, *beside,
                   '--timeout-multiplier', '3', names=todays(
                       names_of(chosen.asan, None, not_asan), IN_TURN_UNDER_ASAN))
    if 'valgrind' in stages:
        meson_test(count, 'unit tests under valgrind', chosen.build,
                   '--timeout-multiplier', '10', '--wrapper',
                   'valgrind --quiet --error-exitcode=99 --leak-check=full --trace-children=no '
                   f'--suppressions={ROOT}/tests/support/tools/valgrind.supp',
                   names=todays(names_of(chosen.build, 'unit', not_valgrind),
                                IN_TURN_UNDER_VALGRIND),
                   ACP_SYNC_HISTORIES='50')
    if 'tsan' in stages:
        meson_test(count, 'unit tests under TSan', chosen.tsan, '--timeout-multiplier', '5',
                   names=UNDER_TSAN + (ALSO_UNDER_TSAN if chosen.whole else []))
    for skipped in count.skipped:
        print(f'skipped in {skipped}')
    for first in count.unsteady:
        print(f'\n==== unsteady, failed beside others and passed alone: {first}')
    for trouble in count.troubles:
        print(f'\n==== {trouble}')
    if count.unsteady:
        print(f'unsteady: {len(count.unsteady)}')
    print(f'{count.passed} passed, {count.failed} failed')
    sys.exit(1 if count.failed else 0)


if __name__ == '__main__':
    main()
