#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""_broker/checkpoint/rollback while other sessions, of the same or another broker, are at work."""

import os
import signal

import case
import processes

from acp import RpcError
from processes import PATIENCE
from sync_case import TurnCase
from sync_room import POINTS
from sync_trial import is_stopped


class Rollback(TurnCase):
    def opened_at(self, **keys):
        """A session whose checkpoint 1 has "0", while the file now has "1"."""
        (self.work / 'a').write_text('0\n')
        client, session = self.opened(**keys)
        (self.work / 'a').write_text('1\n')
        return client, session

    def hang(self, client, session):
        prompt = client.start_prompt(session, 'say on', 'hang')
        client.wait_text('on', PATIENCE)
        return prompt

    def roll_back(self, client, session):
        return client.call('_broker/checkpoint/rollback', {'sessionId': session, 'checkpoint': 1},
                           PATIENCE)

    def refused(self, client, session, other, pid):
        """The rollback is refused while the other session has a prompt, and works afterwards."""
        def kept():
            return client.call('_broker/checkpoint/list', {'sessionId': session})
        before, checkpoints = self.tree(), kept()
        with self.assertRaises(RpcError) as caught:
            self.roll_back(client, session)
        error = caught.exception
        self.assertEqual((error.data['code'], error.data['stage'], error.data['retryable']),
                         ('TOOLS_IN_FLIGHT', 'sync', True))
        self.assertNames(error.message, f'in flight | prompt | session {other} | process {pid}')
        self.assertEqual((self.tree(), kept()), (before, checkpoints))

    def test_a_prompt_of_another_brokers_refuses_it(self):
        client, session = self.opened_at()
        other, theirs = self.opened()
        prompt = self.hang(other, theirs)
        self.refused(client, session, theirs, other.pid)
        other.notify('session/cancel', {'sessionId': theirs})
        self.assertEqual(other.answer(prompt, PATIENCE), {'stopReason': 'cancelled'})
        self.roll_back(client, session)
        self.assertEqual(self.tree(), {'a': '0\n'})
        other.prompt(theirs, 'terminal cp a seen', seconds=PATIENCE)
        self.assertEqual(self.tree(), {'a': '0\n', 'seen': '0\n'})

    def test_a_prompt_of_another_session_of_the_same_agent_refuses_it(self):
        client, session = self.opened_at()
        other = client.new_session(self.work)
        prompt = self.hang(client, other)
        with self.assertRaises(RpcError) as caught:
            self.roll_back(client, session)
        self.assertEqual(caught.exception.data['code'], 'TOOLS_IN_FLIGHT')
        self.assertIn(f'a prompt in session {other}', caught.exception.message)
        client.notify('session/cancel', {'sessionId': other})
        client.answer(prompt, PATIENCE)
        self.roll_back(client, session)
        self.assertEqual(self.tree(), {'a': '0\n'})

    def test_a_prompt_that_begins_meanwhile_is_refused(self):
        other, theirs = self.opened_at(sync='session-bidirectional')
        client = self.start([POINTS, '--config', str(self.dir / 'config-copy'), '--profile',
                             'copy', '--', *self.agent_argv()],
                            env={**self.environment(), 'ACP_POINT': 'apply.noted:1:stop'})
        client.initialize()
        session = client.new_session(self.work)
        rollback = client.start('_broker/checkpoint/rollback',
                                {'sessionId': session, 'checkpoint': 1})
        self.assertTrue(processes.wait_until(lambda: is_stopped(client.pid), PATIENCE))
        with self.assertRaises(RpcError) as refused:
            other.prompt(theirs, 'say on', seconds=PATIENCE)
        self.assertEqual(refused.exception.data['code'], 'ROLLBACK_IN_PROGRESS')
        os.kill(client.pid, signal.SIGCONT)
        client.answer(rollback, PATIENCE)
        self.assertEqual(self.tree(), {'a': '0\n'})
        other.prompt(theirs, 'say on', seconds=PATIENCE)


if __name__ == '__main__':
    case.main()
