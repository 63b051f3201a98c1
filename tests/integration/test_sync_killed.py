#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A broker is killed at each point of a sync (base/point.h), and another one repeats the sync: nothing
is lost, both sides are whole, the store is sound, no temporary file is left.
"""

import functools

import case
from case import selected
from sync_trial import LATE, Trials, killed, killed_at, killed_twice

# Points of the very first sync, which fills the store and the copy.
FIRST_POINTS = ('store.folders', 'object.writing', 'object.renamed', 'store.renamed', 'open.sent',
                'collect.asked', 'snapshot.reading', 'base.setting', 'big.copied', 'upload.sent',
                'import.sending', 'import.sent', 'deliver.asked', 'deliver.done', 'history.sent',
                'base.set', 'checkpoint.added', 'keeper.saved', 'keeper.synced', 'record.renamed')

# Points that no sync through git reaches: test_rsync_killed.py, test_commands_killed.py,
# test_announced.py and daytona/test_killed.py kill there.
ELSEWHERE = ('rsync.', 'mirror.', 'command.', 'take.', 'commits.', 'back.', 'daytona.',
             'keeper.end', 'keeper.looked')

TWICE = (('slot.exchanged', 'apply.swept'), ('slot.taken', 'apply.noted'),
         ('apply.done', 'apply.swept'), ('park.kept', 'park.written'),
         ('round.applied', 'base.setting'), ('base.set', 'checkpoint.added'),
         ('deliver.asked', 'deliver.done'), ('record.written', 'record.written'))


class Killed(Trials):
    def test_every_point_is_reached(self):
        self.assertGreaterEqual(len(self.points), 25)
        synced = {name for name in self.points if not name.startswith(ELSEWHERE)}
        self.assertEqual(synced, set(self.counts) | set(self.first))

    def test_at_every_point(self):
        points = {point for point in self.counts if not point.startswith('stream')}
        self.run_trials(selected(killed_at(self.counts, points)))

    def test_twice(self):
        self.run_trials([functools.partial(killed_twice, *points) for points in TWICE])

    def test_at_the_points_of_the_first_sync(self):
        self.run_first_syncs(selected(
            functools.partial(killed, point, count) for point in FIRST_POINTS
            for count in sorted({1, min(self.first[point] // 2, LATE) or 1})))


if __name__ == '__main__':
    case.main()
