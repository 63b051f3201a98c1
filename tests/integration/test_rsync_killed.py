#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
What test_sync_killed.py and test_sync_cut.py do to a sync by git, this does to a sync by rsync, at
the points that only rsync has: nothing is lost, both sides are whole, no temporary file is left.
"""

import functools

import case
import sync_room
from case import selected
from sync_trial import Trials, killed, killed_at, killed_twice, refused

OURS = ('rsync.', 'mirror.')
TWICE = (('rsync.pushing', 'rsync.fetched'), ('mirror.busy', 'rsync.pulling'),
         ('rsync.pushed', 'rsync.pulled'), ('mirror.applied', 'mirror.taken'))


class ByRsync(Trials):
    @classmethod
    def setUpClass(cls):
        sync_room.Room.transport = 'rsync'
        super().setUpClass()
        cls.ours = {name for name in cls.points if name.startswith(OURS)}

    def test_every_point_is_reached(self):
        self.assertGreaterEqual(len(self.ours), 10)
        self.assertEqual(self.ours - set(self.counts) - set(self.first), set())

    def test_killed_at_every_point(self):
        self.run_trials(selected(killed_at(self.counts, self.ours & set(self.counts))))

    def test_killed_twice(self):
        self.run_trials(selected(functools.partial(killed_twice, *points) for points in TWICE))

    def test_killed_in_the_first_sync(self):
        self.run_first_syncs(selected(functools.partial(killed, point, 1)
                                     for point in sorted(self.ours & set(self.first))))

    def test_the_disk_is_full_or_broken(self):
        self.run_trials([functools.partial(refused, 'mirror.marking', count, action)
                         for count, action in ((1, 'enospc'), (2, 'eio'))])


if __name__ == '__main__':
    case.main()
