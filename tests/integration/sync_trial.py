# SPDX-License-Identifier: MIT
"""Trials that disturb a sync, and rooms in which one trial follows the other."""

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
LATE = 12  # we kill at the first time that a point is reached, and at the last time, up to this one
SAMPLE = 1 if WHOLE else 5 if SANITIZED else 3  # we run one trial of this many
WAKING = re.compile(r'write\(\d+, "\\1(\\0){7}", 8\) += -1 .*INJECTED')


def survey(room):
    """How often each point is reached in a session."""
    room.log.unlink(missing_ok=True)
    client, status = room.session(ACP_POINT_LOG=str(room.log))
    room.assertEqual(status, 0, client.stderr)
    names = room.log.read_text().split()
    return {name: names.count(name) for name in names}


def made(count):
    """A room that has its copy, and `count` folders to edit."""
    room = sync_room.Room()
    room.setUp()
    room.make_and_sync(count)
    return room


# ---- trials: ways to disturb a session ----

def killed(point, count, room):
    """
    Kills the broker at the count-th time that it reaches a point; sessions do not always reach a
    point equally often.
    """
    _, status = room.session(ACP_POINT=f'{point}:{count}:kill')
    if count == 1 or status != 0:
        room.assertEqual(status, -signal.SIGKILL, 'the point was not reached')


def killed_twice(first, second, room):
    """Kills the next broker, too, which repeats the sync."""
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
    """Kills these programs on the other side while the broker stands still at a point."""
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
    """Makes a system call fail once in each thread of the broker."""
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
    The write that wakes up the loop goes to an eventfd, and no kernel makes it fail like this. A
    broker that meets this fault would sleep on, so we kill it.
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
    """Kills the git that packs the history here; the next session has to send the history."""
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
    """Trials that kill at each of the points, at the first time and at a late time."""
    return [functools.partial(killed, point, count) for point in sorted(points)
            for count in sorted({1, min(counts[point], LATE)})]


# ---- chains of them ----

def run_chain(trials):
    """Runs trials in one room, each with edits and a check; returns what was wrong, as texts."""
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
    """Runs a trial of the very first sync."""
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
        """Finds out how often the first session, and one with edits, reaches each point."""
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
