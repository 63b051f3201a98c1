#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Takes a repository of each kind through turns with edits on both sides, and compares what git prints
on each side with a plain clone that gets the same edits: status and log after each turn, and at the
end the id of a commit of everything.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time
import traceback

import places  # noqa: F401  first: it says where the others are
import kinds
from repository_case import RepositoryCase

TURNS = 10
AT_ONCE = 2
KIND_SECONDS = 1800
CONFIG = '''[user]
	name = A
	email = a@b
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
[advice]
	detachedHead = false
[gc]
	auto = 0
'''
COMMIT = 'git add -A && git commit -qm {}'
END = 'the end'
ASKED = {'status': 'git status --porcelain', 'log': 'git log --format=%H'}


class Play(RepositoryCase):
    """Plays the turns of one kind."""

    def __init__(self, name, turns):
        super().__init__()
        self.name, self.turns = name, turns
        self.kind = kinds.KINDS[name]
        self.found = {}   # 'SIDE WHAT': the first difference
        self.plain = self.folder = None
        self.clock = 1700000000

    def runTest(self):
        """Never run: unittest requires it."""

    def shell(self, script, where):
        """Returns (status, output), which depend neither on the time nor on the folder."""
        date = f'{self.clock} +0000'
        env = {**self.environment(), 'SHARED': str(self.dir), 'GIT_AUTHOR_DATE': date,
               'GIT_COMMITTER_DATE': date}
        done = subprocess.run(['sh', '-c', script], cwd=where, env=env, text=True, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, errors='replace')
        self.said = done.stderr
        return done.returncode, done.stdout

    def must(self, script, where):
        status, _ = self.shell(script, where)
        self.assertEqual(status, 0, f'{script}: {self.said}')

    def make(self):
        """Makes the repository twice, with the same ids of commits."""
        (self.dir / 'home').mkdir(exist_ok=True)
        (self.dir / 'home/.gitconfig').write_text(CONFIG)
        for folder in ('broker', 'plain'):
            (self.dir / folder).mkdir()
            self.must(kinds.BASE + self.kind.make, self.dir / folder)
        self.work = self.dir / 'broker' / self.kind.work
        self.plain = self.dir / 'plain' / self.kind.work

    def compare(self, what, turn, plain, sides):
        for side, got in sides.items():
            if got != plain:
                self.found.setdefault(f'{side} {what}', f'turn {turn}: {got} instead of {plain}')

    def look(self, turn, runtime):
        for what, script in ASKED.items():
            plain = self.shell(script, self.plain)
            self.compare(what, turn, plain, {'here': self.shell(script, self.work),
                                             'there': self.shell(script, runtime)})

    def edits(self, table, own, number):
        return [text.replace('{n}', str(number)) for text in (table[(number - 1) % len(table)], own)
                if text]

    def turn(self, client, session, number):
        self.clock += 1000
        here = '; '.join(self.edits(kinds.HERE, self.kind.here, number))
        there = self.edits(kinds.THERE, self.kind.there, number)
        self.must('set -e; ' + here, self.work)
        self.must('set -e; ' + here, self.plain)
        if self.kind.commits and number in kinds.COMMITTED and self.is_repository():
            for where in (self.work, self.plain):
                self.must(COMMIT.format(f'turn-{number}'), where)
        self.prompt(client, session, *there)
        self.must('set -e; ' + '; '.join(there), self.plain)

    def is_repository(self):
        return self.shell('git rev-parse --git-dir', self.plain)[0] == 0

    def commit(self, runtime):
        """Commits everything on each side; compares the results."""
        self.clock += 1000
        done = {}
        for side, where in (('plain', self.plain), ('here', self.work), ('there', runtime)):
            status, _ = self.shell(COMMIT.format(shlex.quote(END)), where)
            done[side] = status, self.shell('git rev-parse HEAD HEAD^{tree}', where)
        self.compare('commit', 'end', done.pop('plain'), done)

    def trees(self, runtime):
        """Names, contents and executable bits, without git's folders and ignored files."""
        script = ("find . -name .git -prune -o -name 'ignored*' -prune -o "
                  "-type f -perm -100 -printf '%P is executable\\n' -o -type l -printf '%P %l\\n' "
                  "| sort; find . -name .git -prune -o -name 'ignored*' -prune -o -type f "
                  "-print0 | sort -z | xargs -0 sha1sum")
        plain = self.shell(script, self.plain)
        self.compare('files', 'end', plain, {'here': self.shell(script, self.work),
                                             'there': self.shell(script, runtime)})

    def go(self):
        """Returns what is wrong, and how the sides differ from a plain clone."""
        wrong, begin = [], time.monotonic()
        try:
            self.setUp()
            self.make()
            client, session = self.opened()
            runtime = self.runtime(client, session)
            for number in range(1, self.turns + 1):
                self.turn(client, session, number)
                self.look(number, runtime)
            self.trees(runtime)
            self.commit(runtime)
            self.ended(client)
        except Exception:  # pylint: disable=broad-except
            said = self.clients[-1].stderr[-2000:] if self.clients else ''
            wrong.append(traceback.format_exc(limit=-3) + said)
        finally:
            try:
                self.doCleanups()
            except AssertionError as error:
                wrong.append(str(error))
        return {'kind': self.name, 'wrong': wrong + self.judge(), 'found': sorted(self.found),
                'seconds': time.monotonic() - begin}

    def judge(self):
        """Differences that nobody expects, and expected ones that do not occur."""
        expected = self.kind.differs
        return ([f'{what} differs from a plain clone: {text[:1500]}'
                 for what, text in self.found.items() if what not in expected] +
                [f'{what} no longer differs, against kinds.py: {why}'
                 for what, why in expected.items()
                 if what not in self.found and self.turns >= TURNS])


def run(name, turns):
    """Runs a kind in a process of its own."""
    argv = [sys.executable, '-B', str(pathlib.Path(__file__).resolve()), '--kind', name,
            '--turns', str(turns)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=KIND_SECONDS)
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        said = '' if isinstance(error, subprocess.TimeoutExpired) else done.stderr[-2000:]
        return {'kind': name, 'wrong': [f'it told nothing: {error} {said}'], 'found': [],
                'seconds': KIND_SECONDS}


def soak(names, turns, at_once, say=print):
    """Runs the kinds; returns the number of things that are wrong."""
    possible = [name for name in names if kinds.is_possible(kinds.KINDS[name])]
    for name in names:
        if name not in possible:
            say(f'{name}: left out, for {kinds.KINDS[name].needs} is not installed')
    wrong = differing = 0
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for result in pool.map(lambda name: run(name, turns), possible):
            name, found = result['kind'], result['found']
            wrong += len(result['wrong'])
            differing += bool(found)
            say(f'{name}: {len(result["wrong"])} wrong, {result["seconds"]:.0f} s'
                + (f'; differs: {", ".join(found)}' if found else ''))
            for text in result['wrong']:
                say('  ' + text.replace('\n', '\n  '))
            for what in found:
                if what in kinds.KINDS[name].differs:
                    say(f'  {what}: {kinds.KINDS[name].differs[what]}')
    say(f'soak repositories: {len(possible)} kinds, {turns} turns each, {differing} differ from a '
        f'plain clone, {wrong} wrong')
    return wrong


def main():
    parser = argparse.ArgumentParser(prog='./dev soak repositories', description=__doc__)
    parser.add_argument('names', nargs='*', metavar='KIND', help=', '.join(kinds.KINDS))
    parser.add_argument('--turns', type=int, default=TURNS)
    parser.add_argument('--at-once', type=int, default=AT_ONCE)
    parser.add_argument('--kind', help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.names) - set(kinds.KINDS)
    if unknown:
        parser.error(f'no kind "{unknown.pop()}": expected {", ".join(kinds.KINDS)}')
    os.umask(0o022)
    if options.kind:
        print(json.dumps(Play(options.kind, options.turns).go()))
        return
    wrong = soak(options.names or list(kinds.KINDS), options.turns, options.at_once,
                 lambda line: print(line, flush=True))
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
