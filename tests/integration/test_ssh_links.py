#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
One long turn on a host, whose connection is cut in each of its stages: during the sync before it,
thousands of updates, a terminal's output, a big file, a question, and the sync after it. The editor
sees the same as without a cut, and the workspace is the same.
"""

import unittest

import net

from case import main
from link_case import STAGES, LinkTurn
from together import Together, tests_of

AT_ONCE = 4


@unittest.skipUnless(net.can_be_made(), 'there are no network namespaces')
class Links(LinkTurn):
    def cut_everywhere(self, kind):
        self.cut_in(kind, *STAGES)

    def test_the_processes_of_the_connection_are_killed(self):
        self.cut_everywhere('child')

    def test_the_link_goes_down_and_comes_back(self):
        self.cut_everywhere('link')

    def test_the_machine_gets_another_address(self):
        self.cut_everywhere('address')

    def test_the_broker_is_stopped_and_goes_on(self):
        self.cut_everywhere('stopped')


class LinksByOpenssh(Links):
    ssh_client = 'openssh'


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [Links, LinksByOpenssh]))


if __name__ == '__main__':
    main()
