#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
One long turn on a host, whose connection is cut in each of its stages: during the sync before it,
thousands of updates, a terminal's output, a big file, a question, and the sync after it. The editor
sees the same as without a cut, and the workspace is the same.
"""

import unittest

import net
import processes

from case import main
from link_case import LinkTurn
from processes import PATIENCE
from together import Together, tests_of

AT_ONCE = 4


@unittest.skipUnless(net.can_be_made(), 'there are no network namespaces')
class Links(LinkTurn):
    def wait(self, condition):
        self.assertTrue(processes.wait_until(condition, PATIENCE), self.client.stderr)

    def shown(self, place, word):
        return [message for message in self.client.received[place:]
                if message.method and word in message.line]

    def cut_everywhere(self, kind):
        self.begin()
        reference = self.end_turn(*self.start_turn())
        self.may_answer.clear()
        self.shut('sync')
        place, waiting = self.start_turn()
        self.wait_reached('sync')
        self.cut(kind)
        self.open_gates()
        self.wait(lambda: len(self.shown(place, b'agent_message_chunk')) > self.updates // 3)
        self.cut(kind)
        self.wait(self.begun.exists)
        self.cut(kind)
        self.wait(lambda: self.shown(place, b'Read a file'))
        self.cut(kind)
        self.wait(lambda: self.shown(place, b'session/request_permission'))
        self.cut(kind)
        self.shut('collect')
        self.may_answer.set()
        self.wait_reached('collect')
        self.cut(kind)
        self.open_gates()
        self.check_same(self.end_turn(place, waiting), reference)
        self.assertEqual((self.losses(), self.returns()), (6, 6))
        begun = [update for update in self.own_calls('unreachable, ')
                 if update['sessionUpdate'] == 'tool_call']
        ended = self.own_calls('reconnected')
        self.assertEqual([(update['toolCallId'], update['status']) for update in ended],
                         [(update['toolCallId'], 'completed') for update in begun])
        self.assertEqual(len(begun), 6)
        self.end()

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
