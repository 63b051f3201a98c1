#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Commands that change a workspace, and the rollback of a session, are killed at each point
(base/point.h) that they reach. Every version is still somewhere, and the same command finishes the
work.
"""

import collections
import concurrent.futures
import signal
import subprocess
import traceback

import case
import sync_room
from acp import RpcError
from store_case import DEADLINE, Store

AT_ONCE = 4
SAMPLE = 1 if case.WHOLE else 5 if case.SANITIZED else 3
SEEN = set()  # the points that any of the commands has reached


class Command(Store):
    """One command in a workspace of its own: it is killed, and run again."""

    def runTest(self):
        """Never run: unittest requires it."""

    def command(self, *words, **more):
        log = self.dir / 'points'
        log.unlink(missing_ok=True)
        env = {**self.environment(), 'PWD': str(self.work), 'ACP_POINT_LOG': str(log), **more}
        result = subprocess.run([sync_room.POINTS, *words], stdin=subprocess.DEVNULL,
                                capture_output=True, cwd=self.work, env=env, timeout=DEADLINE,
                                check=False)
        return result, log.read_text().split() if log.exists() else []

    def prepare(self):
        self.three_checkpoints()
        self.write(a='not in any checkpoint\n', e='neither\n')
        for name, text in (('base', 'base\n'), ('runtime', 'theirs\n')):
            (self.dir / name).mkdir()
            (self.dir / name / 'conflict').write_text(text)
        self.write(conflict='mine\n')
        self.make('conflict', '20260101T000000', str(self.dir / 'base'),
                  str(self.dir / 'runtime'))
        self.before = self.members()

    def members(self):
        return {name: text for name, text in self.files().items()
                if not name.endswith('.acp-conflict') and '.acp-broker-' not in name}

    def everything(self):
        """All versions of all files: in the workspace, parked, or in the store."""
        store = self.make('path')
        git = ['git', f'--git-dir={store}']
        fsck = subprocess.run([*git, 'fsck', '--full', '--no-dangling'], text=True,
                              capture_output=True, check=False)
        self.assertEqual((fsck.returncode, sync_room.WRONG.findall(fsck.stdout + fsck.stderr)),
                         (0, []))
        names = subprocess.run([*git, 'rev-list', '--objects', '--all'], capture_output=True,
                               check=True).stdout
        kept = {line.split()[0].decode() for line in names.splitlines()}
        parked = [path.read_text() for version in ('local', 'runtime')
                  for path in sync_room.parked_files(self.state, version)]
        return kept | {sync_room.blob_id(text.encode())
                       for text in [*self.files().values(), *parked]}

    def check_kept(self, versions):
        everything = self.everything()
        self.assertEqual([text for text in versions
                          if sync_room.blob_id(text.encode()) not in everything], [])

    def check(self, words, wanted):
        versions = [*self.before.values(), 'one\n', 'two\n', 'deep\n']
        self.check_kept([*versions, 'theirs\n'])
        result, _ = self.command(*words)
        done = result.returncode == 0 or b'there is no conflict' in result.stderr
        self.assertTrue(done, result.stderr)
        self.assertEqual(self.members(), wanted)
        if words[0] == 'conflicts':  # nobody wants the version that was not taken any more
            versions.remove('mine\n')
            self.command('checkpoints', 'restore', '1', 'a')  # this command also cleans up
        self.check_kept(versions)
        self.assertEqual([str(path) for path in self.work.rglob('.acp-broker-*')], [])


def run_command(words, trial):
    """
    Returns the points that the command reaches, and the files that it makes; with a trial, kills it
    at a point before.
    """
    room = Command()
    room.setUp()
    try:
        room.prepare()
        if trial is None:
            result, seen = room.command(*words)
            room.assertEqual(result.returncode, 0, result.stderr)
            return seen, room.members()
        point, count, wanted = trial
        result, _ = room.command(*words, ACP_POINT=f'{point}:{count}:kill')
        room.assertEqual(result.returncode, -signal.SIGKILL, 'the point was not reached')
        room.check(words, wanted)
        return None
    except Exception:  # pylint: disable=broad-except
        return f'{words} {trial and trial[:2]}: {traceback.format_exc(limit=-3)}'
    finally:
        room.clean_up()


class Killed(case.Case):
    def run_all(self, run, trials):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            wrong = [text for text in pool.map(run, trials[::SAMPLE]) if text]
        print(f'{self.id()}: {len(trials[::SAMPLE])} kills', flush=True)
        self.assertEqual(wrong, [], '\n'.join(wrong[:8]))

    def killed_everywhere(self, *words):
        found = run_command(words, None)
        self.assertIsInstance(found, tuple, found)
        seen, wanted = found
        SEEN.update(seen)
        counts = collections.Counter(seen)
        self.run_all(lambda trial: run_command(words, trial),
                     [(point, count, wanted) for point, total in sorted(counts.items())
                      for count in sorted({1, total})])

    def test_checkpoints_rollback(self):
        self.killed_everywhere('checkpoints', 'rollback', '1')

    def test_checkpoints_restore(self):
        self.killed_everywhere('checkpoints', 'restore', '2', 'a', 'b', 'c')

    def test_conflicts_take_the_sandboxs(self):
        self.killed_everywhere('conflicts', 'take', 'conflict', 'runtime')

    def test_conflicts_take_ones_own(self):
        self.killed_everywhere('conflicts', 'take', 'conflict', 'local')


# ---- _broker/checkpoint/rollback ----

# We kill at the last time that a point is reached: that is after the sync with which a rollback
# begins, while the rollback itself changes files.
ROLLBACK_POINTS = ('round.applied', 'apply.swept', 'apply.noted', 'slot.written', 'slot.exchanged',
                   'slot.taken', 'slot.there', 'apply.done', 'back.applied', 'deliver.asked',
                   'import.sent', 'deliver.done', 'checkpoint.added', 'base.set', 'keeper.synced',
                   'record.renamed')

def rolled_back(room, session, client):
    client.call('_broker/checkpoint/rollback', {'sessionId': session, 'checkpoint': 1}, 60)


def begin_rollback(room):
    """A workspace with two checkpoints; the second has edits of both sides."""
    room.make_and_sync(1)
    room.edit()
    client, _ = room.open()
    room.close(client)
    return sync_room.tree(room.work)[0]


def survey_rollback():
    """Counts how often each point is reached before a session's rollback begins, and at its end."""
    room = sync_room.Room()
    room.setUp()
    try:
        begin_rollback(room)
        room.log.unlink(missing_ok=True)
        client, session = room.open(ACP_POINT_LOG=str(room.log))
        before = collections.Counter(room.log.read_text().split())
        rolled_back(room, session, client)
        after = collections.Counter(room.log.read_text().split())
        wanted = sync_room.tree(room.work)[0]
        room.close(client)
        return before, after, wanted
    finally:
        room.clean_up()


def kill_rollback(trial):
    point, count, wanted = trial
    room = sync_room.Room()
    room.setUp()
    try:
        edited = begin_rollback(room)
        client, session = room.open(ACP_POINT=f'{point}:{count}:kill')
        try:
            rolled_back(room, session, client)
        except (AssertionError, RpcError):
            pass
        room.close(client)
        room.assert_nothing_runs()
        room.base, room.local, room.remote = {}, edited, {}
        client, session = room.open()
        room.check_store()  # a checkpoint has everything that was edited
        rolled_back(room, session, client)
        room.assert_same(sync_room.tree(room.work)[0], wanted, 'the workspace')
        room.assert_same(sync_room.tree(room.runtime)[0], wanted, 'the copy')
        room.assertEqual(room.close(client), 0, client.stderr)
        room.check_store()
        room.check_litter()
        return None
    except Exception:  # pylint: disable=broad-except
        return f'{trial[:2]}: {traceback.format_exc(limit=-3)}'
    finally:
        room.clean_up()


class KilledRollback(Killed):
    def killed_everywhere(self, *words):
        raise NotImplementedError

    test_checkpoints_rollback = test_checkpoints_restore = None
    test_conflicts_take_the_sandboxs = test_conflicts_take_ones_own = None

    def test_of_a_session(self):
        before, after, wanted = survey_rollback()
        SEEN.update(after)
        for point in ROLLBACK_POINTS:
            self.assertGreater(after[point], before[point], point)
        self.run_all(kill_rollback, [(point, after[point], wanted) for point in ROLLBACK_POINTS])


class Points(case.Case):
    def test_every_point_of_theirs_is_reached(self):
        """Runs after the other tests: unittest sorts by the names of the classes."""
        theirs = {name for name in sync_room.points_in_code()
                  if name.startswith(('command.', 'take.', 'back.'))}
        self.assertEqual(len(theirs), 5)
        self.assertEqual(theirs - SEEN, set())


if __name__ == '__main__':
    case.main()
