#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A small exchange whose connection is cut after a number of bytes, in each direction.
`./dev soak links` cuts in every packet. unit-mux_resume cuts after every byte, without a network.
"""

from byte_case import ByteCase
from case import main
from together import Together, tests_of

AT_ONCE = 2
STEP = 509  # a prime number, so that the cuts come at different places of a packet


class Bytes(ByteCase):
    def test_nothing_is_lost_and_nothing_comes_twice(self):
        self.cut_each(STEP)


class BytesByOpenssh(Bytes):
    ssh_client = 'openssh'


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [Bytes, BytesByOpenssh]))


if __name__ == '__main__':
    main()
