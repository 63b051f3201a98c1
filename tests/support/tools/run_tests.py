#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Builds and runs the tests, and counts their cases. `./dev test` calls it; tests/README.md explains
the stages. Each stage builds only the programs that its tests need.

The last line is "N passed, N failed"; the exit status is 1 if a case failed. A program that ends
badly without naming a failed case counts as one failed case. A program that fails is run once more
alone. If it passes then, it is named as unsteady. Skipped cases are named and not counted.
"""

import argparse
import difflib
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOLS = ROOT / 'tests/support/tools'
PRESETS = ROOT / 'tests/support/presets'

# These tests spend their time in other programs (sshd, node, git, rsync), or start the broker
# hundreds of times. They run without the sanitizers. Other tests run the same code of ours with
# them, and `./dev soak tests` runs these as well.
NOT_UNDER_ASAN = [
    'bench', 'conformance-piped*', 'conformance-remapped', 'conformance-scripted',
    'daytona-*', 'integration-backpressure', 'integration-busy*', 'integration-children_killed',
    'integration-comeback', 'integration-commands_killed', 'integration-daytona_*',
    'integration-deletions', 'integration-faults', 'integration-filters',
    'integration-kill_matrix', 'integration-pause', 'integration-recovery',
    'integration-rollback_cli', 'integration-rsync_killed', 'integration-ssh_*',
    'integration-status', 'integration-sync_cut', 'integration-sync_killed',
    'integration-test_provider', 'integration-turns', 'integration-workspaces',
    'interop-daytona_pair', 'interop-reference_*', 'interop-ssh_pair', 'soak-short',
    'unit-ssh_exec*-openssh', 'unit-ssh_exec*-apart', 'unit-ssh_stress-*',
]

# Their servers or processes have deadlines that valgrind's slowness breaks, or they look at how
# much memory or CPU time the program itself uses. unit-libc makes system calls that valgrind does
# not know; unit-client asks what /proc/self/exe is, and starts what is not there.
NOT_UNDER_VALGRIND = [
    'unit-apply_saved', 'unit-client', 'unit-daytona_api_secret', 'unit-json_memory', 'unit-libc',
    'unit-own_environment', 'unit-process_kill',  # the first one executes itself
    'unit-ssh_apart', 'unit-ssh_clients', 'unit-ssh_exec*', 'unit-ssh_host', 'unit-ssh_libssh2*',
    'unit-ssh_openssh', 'unit-ssh_stress*', 'unit-target_refused', 'unit-tree_view',
]

VALGRIND = ('valgrind --quiet --error-exitcode=99 --leak-check=full --trace-children=no '
            f'--suppressions={TOOLS}/valgrind.supp')

LONGEST_SHOWN = 12

CASES = re.compile(r'^cases: (\d+) passed, (\d+) failed, (\d+) skipped$', re.M)
CMOCKA_PASSED = re.compile(r'^\[  PASSED  \] (\d+) test', re.M)
CMOCKA_FAILED = re.compile(r'^\[  FAILED  \] (?:.*: )?(\d+) test', re.M)
CMOCKA_SKIPPED = re.compile(r'^\[  SKIPPED \] (?:.*: )?(\d+) test', re.M)
SKIPPED_NAME = re.compile(r"^\[ RUN      \] .*\n\[  SKIPPED \] (\w+)|^(\w+) .*\.\.\. skipped", re.M)
CMOCKA_RUNS = re.compile(r'^\[==========\] .*Running (\d+) test', re.M)


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


class Build:
    """A build directory. It is configured and its tests are read when a stage first needs it."""

    def __init__(self, folder, preset=None):
        self.folder, self.preset, self.known = folder, preset, None

    def configure(self):
        if (ROOT / self.folder / 'build.ninja').exists():
            subprocess.run(['ninja', '-C', self.folder, 'build.ninja'], cwd=ROOT, check=True,
                           stdout=sys.stderr)
            return
        options = [f'--native-file={PRESETS / self.preset}'] if self.preset else []
        subprocess.run(['meson', 'setup', '--werror', *options, self.folder], cwd=ROOT, check=True,
                       stdout=sys.stderr)

    def introspect(self, what):
        told = subprocess.run(['meson', 'introspect', f'--{what}', self.folder], cwd=ROOT,
                              check=True, capture_output=True, text=True).stdout
        return json.loads(told)

    def tests(self):
        """All tests as {name: (suites, targets to build)}."""
        if self.known is None:
            self.configure()
            base = ROOT / self.folder
            made = {target['id']: [os.path.relpath(name, base) for name in target['filename']]
                    for target in self.introspect('targets')}
            self.known = {}
            for test in self.introspect('tests'):
                targets = [name for needed in test['depends'] for name in made[needed]]
                suites = [suite.split(':')[-1] for suite in test['suite']]
                self.known[test['name']] = (suites, targets)
        return self.known

    def in_suite(self, suite):
        return [name for name, (suites, _) in self.tests().items() if suite in suites]

    def make(self, names):
        """Builds what these tests need. A build that fails ends the run."""
        targets = sorted({target for name in names for target in self.tests()[name][1]})
        if targets:
            subprocess.run(['ninja', '-C', self.folder, *targets], cwd=ROOT, check=True,
                           stdout=sys.stderr)


PLAIN, ASAN, TSAN = Build('build'), Build('build-asan', 'asan.ini'), Build('build-tsan', 'tsan.ini')


class Stage:
    """Tests of one build directory, and how meson runs them."""

    def __init__(self, title, build, choose, *arguments, at_once=None):
        self.title, self.build, self.choose = title, build, choose
        # Many of these programs wait for deadlines, and for each other.
        at_once = at_once or (os.cpu_count() or 1) + 1
        self.arguments = ['--num-processes', str(at_once), *arguments]


def quick():
    return ASAN.in_suite('quick')


def installed(build):
    """All tests but those of today's agents, whose packages only `./dev test 'agents*'` and
    `./dev soak tests` install."""
    return [name for name in build.tests() if name not in build.in_suite('agents')]


def not_quick(build):
    """The tests that `./dev test` has not already run under the sanitizers."""
    ran = set(quick())
    return [name for name in installed(build) if name not in ran]


def asan_rest():
    return [name for name in not_quick(ASAN) if not matches(name, NOT_UNDER_ASAN)]


def asks_for_sanitizers(name):
    """Whether a test does less under the sanitizers: its file asks whether they are there."""
    kind, _, rest = name.partition('-')
    path = ROOT / 'tests' / kind / f'test_{rest.split("-")[0]}'
    return any(file.exists() and 'SANITIZE' in file.read_text()
               for file in (path.with_suffix('.c'), path.with_suffix('.py')))


def plain_rest():
    """What does not run under the sanitizers, or not all of it."""
    return [name for name in installed(PLAIN)
            if matches(name, NOT_UNDER_ASAN) or asks_for_sanitizers(name)]


def under_valgrind():
    return [name for name in PLAIN.in_suite('valgrind') if not matches(name, NOT_UNDER_VALGRIND)]


def whole_valgrind():
    return [name for name in PLAIN.in_suite('unit') if not matches(name, NOT_UNDER_VALGRIND)]


# The time limits in tests/**/meson.build suit a quiet machine. They only end tests that hang.
STAGES = {
    'quick': Stage('quick tests under ASan and UBSan', ASAN, quick, '--timeout-multiplier', '4',
                   at_once=2 * (os.cpu_count() or 1)),
    'plain': Stage('longer tests', PLAIN, plain_rest, '--timeout-multiplier', '3',
                   at_once=2 * (os.cpu_count() or 1)),
    'asan': Stage('longer tests under ASan and UBSan', ASAN, asan_rest,
                  '--timeout-multiplier', '6', at_once=2 * (os.cpu_count() or 1)),
    'valgrind': Stage('unit tests under valgrind', PLAIN, under_valgrind,
                      '--timeout-multiplier', '20', '--wrapper', VALGRIND),
    'tsan': Stage('unit tests under TSan', TSAN, lambda: TSAN.in_suite('tsan'),
                  '--timeout-multiplier', '10'),
}
# The stages of `./dev soak tests`; they leave out nothing.
WHOLE = {
    'plain': Stage('all tests', PLAIN, lambda: list(PLAIN.tests()),
                   '--timeout-multiplier', '3', at_once=2 * (os.cpu_count() or 1)),
    'asan': Stage('all tests under ASan and UBSan', ASAN, lambda: list(ASAN.tests()),
                  '--timeout-multiplier', '20'),
    'valgrind': Stage('all unit tests under valgrind', PLAIN, whole_valgrind,
                      '--timeout-multiplier', '40', '--wrapper', VALGRIND),
    'tsan': STAGES['tsan'],
}


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

    def print(self):
        for skipped in self.skipped:
            print(f'skipped in {skipped}')
        for first, text in self.unsteady:
            print(f'\n==== unsteady, failed beside others and passed alone: {first}\n{text}')
        for trouble in self.troubles:
            print(f'\n==== {trouble}')
        if self.unsteady:
            print(f'unsteady: {len(self.unsteady)} '
                  f'({", ".join(first for first, _ in self.unsteady)})')
        print(f'{self.passed} passed, {self.failed} failed')


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


def run_meson(folder, log, arguments):
    """Runs meson's tests of a build directory and returns the entries of its log."""
    logs = ROOT / folder / 'meson-logs'
    for path in logs.glob(f'{log}*.json'):
        path.unlink()
    subprocess.run(['meson', 'test', '-C', folder, '--no-rebuild', '--logbase', log, *arguments],
                   cwd=ROOT, check=False, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, PYTHONDONTWRITEBYTECODE='1'))
    # With a wrapper, meson adds its name to the log's.
    found = sorted(logs.glob(f'{log}*.json'), key=os.path.getmtime)
    return [json.loads(line) for line in found[-1].read_text().splitlines()] if found else []


def test_name(entry):
    return entry['name'].split(' / ')[-1]


def text_of(entry):
    return entry.get('stdout', '') + '\n' + entry.get('stderr', '')


def longest(entries):
    ordered = sorted(entries, key=lambda entry: entry['duration'], reverse=True)
    return ', '.join(f'{test_name(entry)} {entry["duration"]:.0f}'
                     for entry in ordered[:LONGEST_SHOWN])


def second_run(count, stage, log, entry):
    """Runs a failed program again, alone. If it passes, counts that and names it as unsteady."""
    name = test_name(entry)
    again = run_meson(stage.build.folder, f'{log}-again',
                      [*stage.arguments, '--num-processes', '1', name])
    if len(again) != 1 or again[0]['result'] != 'OK':
        return entry
    count.unsteady.append((f'{stage.title}: {name}', text_of(entry)[-3000:]))
    return again[0]


def run_stage(count, key, stage, names):
    before, begun = (count.passed, count.failed), time.monotonic()
    print(f'== building for {stage.title}', file=sys.stderr, flush=True)
    stage.build.make(names)
    built = time.monotonic()
    print(f'== {stage.title}', file=sys.stderr, flush=True)
    log = f'run-{key}'
    entries = run_meson(stage.build.folder, log, [*stage.arguments, *names])
    if not entries:
        count.add(stage.title, (0, 1, 0), 'meson test ran nothing')
    for entry in entries:
        if entry['result'] not in ('OK', 'SKIP', 'EXPECTEDFAIL'):
            entry = second_run(count, stage, log, entry)
        text = text_of(entry)
        count.add(f'{stage.title}: {test_name(entry)}: {entry["result"]}',
                  count_cases(entry['result'], text), text)
    print(f'{stage.title}: {count.passed - before[0]} passed, {count.failed - before[1]} failed '
          f'(built in {built - begun:.0f} s, ran {time.monotonic() - built:.0f} s)', flush=True)
    print(f'longest of them: {longest(entries)}', flush=True)


def run_program(count, title, *argv):
    begun = time.monotonic()
    result = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    text = result.stdout + '\n' + result.stderr
    counted = count_cases('OK' if result.returncode == 0 else 'FAIL', text)
    count.add(title, counted, text)
    print(f'{title}: {counted[0]} passed, {counted[1]} failed '
          f'({time.monotonic() - begun:.0f} s)', flush=True)


def run_checks(count):
    for name in ('layers', 'style', 'docs'):
        run_program(count, name, sys.executable, '-B', str(TOOLS / f'check_{name}.py'))


def run_builds(count):
    """The other builds: with other compilers, and as a packager does it."""
    PLAIN.configure()
    for name in ('compilers', 'packager'):
        run_program(count, name, sys.executable, '-B', str(TOOLS / f'{name}.py'), PLAIN.folder)


PROGRAMS = {'checks': run_checks, 'builds': run_builds}


def named(build, patterns):
    """The tests that the patterns name, with or without the kind in front ("unit-", …)."""
    known, chosen = list(build.tests()), []
    for pattern in patterns:
        found = [name for name in known if matches(name, (pattern, f'*-{pattern}'))]
        if not found:
            near = difflib.get_close_matches(pattern, known, 3, 0.4)
            hint = f'; did you mean {", ".join(near)}?' if near else ''
            sys.exit(f'dev test: there is no test "{pattern}"{hint}')
        chosen += [name for name in found if name not in chosen]
    return chosen


def main():
    parser = argparse.ArgumentParser(prog='./dev test', description=__doc__.split('\n\n')[0])
    parser.add_argument('names', nargs='*', metavar='NAME',
                        help='only these tests, with * and ?; under ASan unless --only says more')
    parser.add_argument('--all', action='store_true', help='everything that CI shows')
    parser.add_argument('--rest', action='store_true',
                        help='the part of --all that is not in ./dev test')
    parser.add_argument('--only', action='append', choices=(*PROGRAMS, *STAGES),
                        help='one stage; may be repeated')
    parser.add_argument('--soak', action='store_true', help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    stages = WHOLE if chosen.soak else STAGES
    keys = chosen.only or (list(WHOLE) if chosen.soak else
                           ['asan'] if chosen.names else
                           [*PROGRAMS, *STAGES] if chosen.all else
                           ['builds', *(key for key in STAGES if key != 'quick')]
                           if chosen.rest else
                           ['checks', 'quick'])
    count = Count()
    for key in keys:
        if key in PROGRAMS:
            PROGRAMS[key](count)
            continue
        stage = stages[key]
        run_stage(count, key, stage,
                  named(stage.build, chosen.names) if chosen.names else stage.choose())
    count.print()
    sys.exit(1 if count.failed else 0)


if __name__ == '__main__':
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(f'dev test: {" ".join(failed.cmd[:4])} failed with status {failed.returncode}')
