#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Cuts the connection of turns on a host at random instants, and compares what the editor gets with
the same turn without a cut: nothing may be lost or doubled, and the agent must be the same one.
"""

import argparse
import collections
import random
import secrets
import sys
import time
import unittest

import places  # first: it says where the others are
import net
from link_case import LinkTurn
from together import Together

CUTS_OF_A_STINT = 50
AT_ONCE = 4
LONGEST_PAUSE = 0.6  # seconds between a connection and its cut
# The kinds "link" and "address" are rarer: they wait for a probe of 3 s.
KINDS = ['child'] * 6 + ['stopped'] * 2 + ['link', 'address']


class Stint(LinkTurn):
    updates, update_size = 2000, 1000
    file_bytes = 2 << 20
    lines_of_terminal = 200000
    seed, cuts = '', 0

    def runTest(self):
        self.random = random.Random(self.seed)
        self.done = collections.Counter()
        self.turns_done = 0
        self.begin()
        reference = self.end_turn(*self.start_turn())
        while sum(self.done.values()) < self.cuts:
            place, waiting = self.start_turn()
            self.cut_while_open(waiting)
            self.check_same(self.end_turn(place, waiting), reference)
            self.turns_done += 1
        self.assertEqual(self.losses(), self.returns())
        self.assertEqual(self.client.stderr.count('agent 2'), 0)
        self.end()

    def is_answered(self, waiting):
        return any(message.is_response and message.id == waiting
                   for message in self.client.received[-50:])

    def cut_while_open(self, waiting):
        while not self.is_answered(waiting) and sum(self.done.values()) < self.cuts:
            time.sleep(self.random.random() * LONGEST_PAUSE)
            kind = self.random.choice(KINDS)
            self.may_answer.clear()
            self.cut(kind)
            self.may_answer.set()
            self.done[kind] += 1


class StintByOpenssh(Stint):
    ssh_client = 'openssh'


def stints(cuts, seed):
    count = max(2, -(-cuts // CUTS_OF_A_STINT))
    for number in range(count):
        stint = (Stint, StintByOpenssh)[number % 2]()
        stint.seed = f'{seed}.{number}'
        stint.cuts = cuts // count + (number < cuts % count)
        yield stint


def main():
    parser = argparse.ArgumentParser(prog='./dev soak links')
    parser.add_argument('cuts', nargs='?', type=int, default=1000)
    parser.add_argument('--at-once', type=int, default=AT_ONCE)
    parser.add_argument('--seed', default=secrets.token_hex(4))
    given = parser.parse_args()
    if not net.can_be_made():
        parser.error('this soak makes network namespaces: run it as root')
    all_stints = list(stints(given.cuts, given.seed))
    result = unittest.TextTestRunner(verbosity=2).run(Together(given.at_once, all_stints))
    done = collections.Counter()
    for stint in all_stints:
        done.update(getattr(stint, 'done', {}))
    turns = sum(getattr(stint, 'turns_done', 0) for stint in all_stints)
    kinds = ', '.join(f'{kind} {number}' for kind, number in sorted(done.items()))
    print(f'seed {given.seed}: {sum(done.values())} cuts ({kinds}) in {turns} turns that were the '
          f'same as without; {len(result.failures) + len(result.errors)} stints failed')
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
