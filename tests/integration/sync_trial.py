# SPDX-License-Identifier: MIT
"""What happens to a sync, and rooms in which it happens to one after the other."""

import concurrent.futures
import functools
import os
import re
import shutil
import signal
import subprocess
import threading
import traceback
import unittest

import processes
import sync_room
from case import SANITIZED, WHOLE

AT_ONCE = 4  # chains of trials
LATE = 12  # we kill at the first time that a point is reached, and at the last one up to this
SAMPLE = 5 if SANITIZED and not WHOLE else 1  # we run one of so many trials
WAKING = re.compile(r'write\(\d+, "\\1(\\0){7}", 8\) += -1 .*INJECTED')


def survey(room):
    """How often each point is reached in a session."""
    room.log.unlink(missing_ok=True)
    client, status = room.session(ACP_POINT_LOG=str(room.log))
    room.assertEqual(status, 0, client.stderr)
    names = room.log.read_text().split()
    return {name: names.count(name) for name in names}


def made(count):
    """A room whose copy is there, with `count` folders for edits."""
    room = sync_room.Room()
    room.setUp()
    room.make_and_sync(count)
    return room


# ---- trials: what happens to a session ----

def killed(point, count, room):
    """At a point, the count-th time; how often a session comes by is not always the same."""
    _, status = room.session(ACP_POINT=f'{point}:{count}:kill')
    if count == 1 or status != 0:
        room.assertEqual(status, -signal.SIGKILL, 'the point was not reached')


def killed_twice(first, second, room):
    """The one that makes it good is killed, too."""
    killed(first, 1, room)
    room.assert_nothing_runs()
    killed(second, 1, room)


def refused(point, count, action, room):
    room.log.unlink(missing_ok=True)
    room.session(ACP_POINT=f'{point}:{count}:{action}', ACP_POINT_LOG=str(room.log))
    room.assertIn(point, room.log.read_text().split())


def is_stopped(pid):
    stat = processes.stat_of(pid)
    return stat is None or stat[1] in 'TZX'


def other_side_killed(point, names, room):
    """The broker stands still at a point while it is done."""
    client = room.begin_broker(ACP_POINT=f'{point}:1:stop')
    client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
    client.start('session/new', {'cwd': str(room.work), 'mcpServers': []})
    room.assertTrue(processes.wait_until(lambda: is_stopped(client.pid), 60), client.stderr)
    for pid in processes.descendants(client.pid):
        if processes.name_of(pid) in names and processes.parent_of(pid) != client.pid:
            processes.kill(pid)
    os.kill(client.pid, signal.SIGCONT)
    room.close(client)


def call_failed(call, way, number, hits, room):
    """A system call of each thread of the broker's fails once."""
    log = room.dir / f'strace-{room.number}'
    room.wrapper = strace(log, call, f'inject={call}:error={way}:when={number}')
    ended = threading.Event()
    watcher = threading.Thread(target=end_where_none_can_fail, args=(room, log, ended))
    watcher.start()
    try:
        room.session(ASAN_OPTIONS='detect_leaks=0')
    finally:
        room.wrapper = []
        ended.set()
        watcher.join()
    hits.append('(INJECTED)' in log.read_text(errors='replace'))


def end_where_none_can_fail(room, log, ended):
    """
    The write that wakes the loop up is to an eventfd, and fails in no kernel so. A broker that
    met it sleeps on: it is killed there instead.
    """
    while not ended.wait(0.05):
        if log.exists() and WAKING.search(log.read_text(errors='replace')):
            processes.kill(room.clients[-1].pid)
            return


GIT_WITHOUT_PACKS = """#!/bin/sh
case " $* " in *" pack-objects "*) kill -9 $$ ;; esac
exec {git} "$@"
"""


def pack_killed(room):
    """The git that packs the history here is killed; that is made good in the next session."""
    folder = room.dir / 'bin'
    folder.mkdir()
    program = folder / 'git'
    program.write_text(GIT_WITHOUT_PACKS.format(git=shutil.which('git')))
    program.chmod(0o755)
    path = room.environment()['PATH']
    client, status = room.session(PATH=f'{folder}:{path}')
    room.assertEqual(status, 0, client.stderr)
    room.assertIn('history', client.stderr)
    client, _ = room.open()
    client.process.kill()
    client.wait()
    heads = [subprocess.run(['git', '-C', str(root), 'rev-parse', 'HEAD'], check=True,
                            capture_output=True).stdout for root in (room.work, room.runtime)]
    room.assertEqual(*heads)


def strace(log, call, *words):
    return ['strace', '-D', '-qq', '-f', '-b', 'execve', '-o', str(log), '-e', f'trace={call}',
            *(part for word in words for part in ('-e', word))]


def killed_at(counts, points):
    """Trials: killed at each of the points, the first and a late time that it is reached."""
    return [functools.partial(killed, point, count) for point in sorted(points)
            for count in sorted({1, min(counts[point], LATE)})]


# ---- chains of them ----

def run_chain(trials):
    """Trials in one room, each with edits and a check; what was wrong, as texts."""
    wrong = []
    trials = list(trials)
    while trials:
        wrong += run_until_wrong(trials)
    return wrong


def run_until_wrong(trials):
    room = None
    trial = None
    try:
        room = made(len(trials))
        while trials:
            trial = trials.pop(0)
            room.edit()
            trial(room)
            room.check()
    except Exception:  # pylint: disable=broad-except
        trials[:] = trials if trial else []
        return [f'{described(trial)}: {traceback.format_exc(limit=-3)}'
                f'{room.clients[-1].stderr[-600:] if room and room.clients else ""}']
    finally:
        if room:
            room.clean_up()
    return []


def described(trial):
    return f'{trial.func.__name__} {trial.args}' if trial else 'the beginning'


def run_first(trial):
    """A trial of the first sync of all."""
    room = sync_room.Room()
    room.setUp()
    try:
        room.make(1)
        room.edit_nothing()
        trial(room)
        room.check()
    except Exception:  # pylint: disable=broad-except
        return [f'{described(trial)}: {traceback.format_exc(limit=-3)}'
                f'{room.clients[-1].stderr[-600:]}']
    finally:
        room.clean_up()
    return []


class Trials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """How often each point is reached in the first session, and in one with edits."""
        cls.points = sync_room.points_in_code()
        room = sync_room.Room()
        room.setUp()
        try:
            room.make(1)
            cls.first = survey(room)
            client, _ = room.open()
            room.close(client)
            room.edit()
            cls.counts = survey(room)
        finally:
            room.clean_up()

    def run_all(self, run, parts):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            wrong = [text for texts in pool.map(run, parts) for text in texts]
        if wrong:
            self.fail(f'{len(wrong)} wrong:\n' + '\n'.join(wrong[:12]))

    def run_trials(self, trials):
        trials = trials[::SAMPLE]
        print(f'{self.id()}: {len(trials)} syncs', flush=True)
        self.run_all(run_chain, [trials[part::AT_ONCE] for part in range(AT_ONCE)])

    def run_first_syncs(self, trials):
        trials = trials[::SAMPLE]
        print(f'{self.id()}: {len(trials)} first syncs', flush=True)
        self.run_all(run_first, trials)
