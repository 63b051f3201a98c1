#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A matrix of the moments at which a session is cut off, the process that is killed, and the place
where the agent works. After each cell nothing is left, and no edit is lost. A cell of a provider is
(phase, point, victim).
"""

import concurrent.futures
import itertools
import traceback
import unittest

import case
import kill_room
import sshd

AT_ONCE = 4
CHAIN = 9  # cells that follow each other in one room

# The points (base/point.h) that a turn with edits on both sides reaches, and those of the end.
PLAIN = {'turn': ('snapshot.begun', 'snapshot.taken', 'object.written', 'store.renamed',
                  'checkpoint.added')}
SYNCED = {
    'turn': ('collect.asked', 'collect.answered', 'snapshot.taken', 'object.renamed',
             'merge.begun', 'slot.exchanged', 'base.setting', 'deliver.asked', 'deliver.done',
             'base.set', 'keeper.synced'),
    'end': ('collect.asked', 'merge.done', 'deliver.asked', 'record.written', 'keeper.done'),
}
BY_RSYNC = {
    'turn': ('rsync.pulling', 'rsync.pulled', 'mirror.taken', 'mirror.busy', 'rsync.pushing',
             'rsync.pushed', 'rsync.settled'),
    'end': ('rsync.pulling', 'rsync.pulled'),
}
TRANSIENT = {
    'turn': ('collect.answered', 'slot.exchanged', 'deliver.done'),
    'end': ('collect.answered', 'keeper.done', 'keeper.ending', 'keeper.looked', 'keeper.ended'),
}
VICTIMS = ('broker', 'guard', 'agent', 'child')


def cells(places, phase, victims):
    return [(phase, point, victim)
            for point, victim in itertools.product(places.get(phase, ()), victims)]


def matrix():
    """(provider, cells). At the end the agent is gone, and its guard on this machine, too."""
    table = [('local', cells(PLAIN, 'turn', VICTIMS)),
             ('copy', cells(SYNCED, 'turn', VICTIMS) + cells(SYNCED, 'end', ('broker',)))]
    if sshd.can_be_started():
        for name in ('ssh', 'ssh-scripts'):
            table.append((name, cells(SYNCED, 'turn', (*VICTIMS, 'sshd'))
                          + cells(SYNCED, 'end', ('broker', 'guard', 'sshd'))))
        table.append(('ssh-rsync', cells(BY_RSYNC, 'turn', ('broker', 'guard', 'child', 'sshd'))
                      + cells(BY_RSYNC, 'end', ('broker', 'guard', 'sshd'))))
        table.append(('ssh-transient', cells(TRANSIENT, 'turn', ('broker', 'guard', 'sshd'))
                      + cells(TRANSIENT, 'end', ('broker', 'guard', 'sshd'))))
    return table


def run_chain(provider, chain):
    """
    Runs the cells; returns what was wrong, as texts. After a failure the other cells get a new
    room.
    """
    wrong = []
    while chain:
        room, cell = kill_room.Room(provider), None
        try:
            room.setUp()
            while chain:
                cell = chain.pop(0)
                room.cut(*cell)
                room.check()
        except Exception as failure:  # pylint: disable=broad-except
            last = room.clients[-1].stderr[-800:] if room.clients else ''
            reason = str(failure).partition('\n')[0]  # again at the end: a long report is cut
            wrong.append(f'{traceback.format_exc(limit=-2)}\n{last}\n{provider} {cell}: {reason}')
        finally:
            room.doCleanups()
    return wrong


class Matrix(unittest.TestCase):
    def test_nothing_is_left_and_nothing_lost(self):
        """Runs a selection of the matrix; every point and every victim is in some cell."""
        chains = [(provider, some[i::-(-len(some) // CHAIN)])
                  for provider, all_cells in matrix() for some in [case.selected(all_cells, 7)]
                  for i in range(-(-len(some) // CHAIN))]
        count = sum(len(chain) for _, chain in chains)
        if case.WHOLE:
            self.assertGreaterEqual(count, 150 if sshd.can_be_started() else 60)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            wrong = sum(pool.map(lambda chain: run_chain(*chain), chains), [])
        print(f'{count} cells, {len(wrong)} wrong', flush=True)
        self.assertEqual(wrong, [], '\n'.join(wrong))


if __name__ == '__main__':
    case.main()
