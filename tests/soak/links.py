#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Cuts the connection of turns on a host, and compares what the editor gets with the same turn without
a cut: nothing may be lost or doubled, and the agent must be the same one.

  random  cuts at random instants
  large   10,000 updates, 100 MiB of a terminal's output and a file of 50 MiB, cut in every stage
  long    interruptions of 10 s and 3 min, and one of 70 s where link-grace is 60 s (as 70 min and
          1 h, at a sixtieth of the time)
  bytes   a small exchange, cut in every packet of SSH, in each direction
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
from byte_case import PACKET_BYTES, ByteCase
from link_case import STAGES, LinkTurn
from ssh_case import SILENT
from test_ssh_away import Gone
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


class Large(LinkTurn):
    updates, update_size = 10000, 1000
    file_bytes = 50 << 20
    lines_of_terminal = 13000000  # more than 100 MiB
    keys = {'max_file': '64m', 'alive_interval': SILENT['alive-interval'],
            'alive_count': SILENT['alive-count']}
    kind = 'child'

    def runTest(self):
        self.cut_in(self.kind, *STAGES, **self.keys)

    def __str__(self):
        return f'{super().__str__()} {self.kind}'


class LargeByOpenssh(Large):
    ssh_client = 'openssh'


class Interruption(LinkTurn):
    seconds = 10

    def runTest(self):
        self.begin()
        for stage in self.stages():
            if stage in ('updates', 'question'):
                self.chain.set_link(0, 'down')
                time.sleep(self.seconds)
                self.chain.set_link(0, 'up')
                self.wait_back(self.losses())
        self.assertEqual((self.losses(), self.returns()), (2, 2))
        self.end()

    def __str__(self):
        return f'{super().__str__()} {self.seconds} s'


class InterruptionByOpenssh(Interruption):
    ssh_client = 'openssh'


class Longer(Gone):
    """The interruption is longer than link-grace."""

    def runTest(self):
        self.begin(link_grace='60s', turn_grace='60s')
        self.chain.set_link(0, 'down')
        time.sleep(70)
        self.wait_ended()
        self.chain.set_link(0, 'up')
        # Either the broker has given up, or it comes back and hears that the runner has ended.
        self.failure(self.client.response(self.waiting), 'LINK_LOST')
        self.check_next()


class LongerByOpenssh(Longer):
    ssh_client = 'openssh'


class Bytes(ByteCase):
    part, parts, step = 0, 1, PACKET_BYTES

    def runTest(self):
        self.cut_each(self.step, self.part, self.parts)


class BytesByOpenssh(Bytes):
    ssh_client = 'openssh'


def made(one, **values):
    test = one()
    for name, value in values.items():
        setattr(test, name, value)
    return test


def large_ones():
    for kind in ('child', 'link', 'silent', 'unheard', 'stopped', 'address'):
        yield from (made(one, kind=kind) for one in (Large, LargeByOpenssh))


def long_ones():
    for seconds in (10, 180):
        yield from (made(one, seconds=seconds) for one in (Interruption, InterruptionByOpenssh))
    yield from (Longer(), LongerByOpenssh())


def byte_ones():
    for part in range(2):
        yield from (made(one, part=part, parts=2) for one in (Bytes, BytesByOpenssh))


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
    parser.add_argument('--only', action='append', choices=('random', 'large', 'long', 'bytes'))
    given = parser.parse_args()
    if not net.can_be_made():
        parser.error('this soak makes network namespaces: run it as root')
    random_ones = list(stints(given.cuts, given.seed))
    parts = {'random': random_ones, 'large': large_ones(), 'long': long_ones(),
             'bytes': byte_ones()}
    chosen = [test for name, tests in parts.items() if name in (given.only or parts)
              for test in tests]
    result = unittest.TextTestRunner(verbosity=2).run(Together(given.at_once, chosen))
    done = collections.Counter()
    for stint in random_ones:
        done.update(getattr(stint, 'done', {}))
    turns = sum(getattr(stint, 'turns_done', 0) for stint in random_ones)
    kinds = ', '.join(f'{kind} {number}' for kind, number in sorted(done.items()))
    if done:
        print(f'seed {given.seed}: {sum(done.values())} cuts ({kinds}) in {turns} turns that were '
              'the same as without')
    print(f'{len(chosen)} tests, {len(result.failures) + len(result.errors)} failed')
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
