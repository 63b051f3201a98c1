#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A sync whose disk is full or fails, whose stream is cut, or whose other side is killed, and the sync
after it: nothing is lost, both sides are whole, the store is sound, no temporary file is left.
"""

import collections
import functools
import re

import case
from case import selected
from faults_survey import spread
from faults_trial import why_no_ptrace
from sync_trial import Trials, call_failed, made, other_side_killed, pack_killed, refused, strace

MOST_CUTS = 5  # in each direction, the number of places at which we cut a stream
MOST_CALLS = 3  # how often we make each system call fail in each way

# Points at which a script, or its git, waits for us.
SCRIPT_POINTS = ('open.sent', 'collect.asked', 'collect.fetching', 'transfer.object',
                 'upload.sent', 'import.sending', 'import.sent', 'deliver.asked')
OTHER_SIDES = {
    'what the script runs': ('git', 'cat', 'xargs', 'find'),
    'the script': ('sh', 'dash', 'bash'),
    'the guard of all': ('acp-guard',),
}
CALLS = {'write': ('ENOSPC', 'EIO'), 'writev': ('ENOSPC',), 'fsync': ('EIO',),
         'renameat': ('ENOSPC',), 'renameat2': ('EIO',), 'openat': ('ENOSPC', 'EIO')}
LINE = re.compile(r'(\d+) +[a-z0-9]+\(')


class Cut(Trials):
    def test_the_disk_is_full_or_broken_at_every_point(self):
        self.run_trials(selected(functools.partial(refused, point, count, action)
                                for point, can_fail in sorted(self.points.items()) if can_fail
                                if not point.startswith(('stream', 'mirror', 'daytona', 'commits'))
                                for count, action in (
                                    (1, 'enospc'), ((self.counts[point] + 1) // 2, 'eio'))))

    def test_the_stream_is_cut(self):
        self.run_trials([functools.partial(refused, point, place + 1, 'eio')
                         for point in ('stream.reading', 'stream.writing')
                         for place in spread(self.counts[point] // 2, MOST_CUTS)])

    def test_the_other_side_is_killed(self):
        self.run_trials(selected(functools.partial(other_side_killed, point, names)
                                for names in OTHER_SIDES.values() for point in SCRIPT_POINTS))

    def test_our_own_git_is_killed(self):
        self.run_first_syncs([functools.partial(pack_killed)])

    def test_system_calls_fail(self):
        self.assertIsNone(why_no_ptrace())
        hits = []
        trials = selected(functools.partial(call_failed, call, way, place + 1, hits)
                         for call, ways in CALLS.items() for way in ways
                         for place in spread(self.most_calls(call), MOST_CALLS))
        self.run_trials(trials)
        print(f'{self.id()}: {sum(hits)} of {len(hits)} met their fault', flush=True)
        self.assertGreater(sum(hits), len(hits) * 0.3)

    def most_calls(self, call):
        """
        How often the thread that makes the most of these calls makes them; strace counts in this
        way.
        """
        room = made(1)
        try:
            room.edit()
            log = room.dir / 'strace'
            room.wrapper = strace(log, call)
            _, status = room.session(ASAN_OPTIONS='detect_leaks=0')
            self.assertEqual(status, 0)
            threads = collections.Counter(
                LINE.match(line).group(1) for line in log.read_text(errors='replace').splitlines()
                if LINE.match(line))
        finally:
            room.wrapper = []
            room.clean_up()
        return max(threads.values(), default=0)


if __name__ == '__main__':
    case.main()
