#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A session is opened while another broker ends the sandbox that the session would use."""

import os
import signal

import case
import processes
from sessions_case import SessionsCase
from processes import PATIENCE
from sync_room import POINTS


class Announced(SessionsCase):
    def at_point(self, point):
        """Opens a session in a transient sandbox; its broker stops when it reaches this point."""
        self.copied(persistence='transient').close_stdin()  # writes the configuration
        options = ['--config', str(self.dir / 'config-copy'), '--profile', 'copy']
        client = self.start([POINTS, *options, '--', *self.agent_argv()],
                            env={**self.environment(), 'ACP_POINT': f'{point}:1:stop'})
        client.initialize()
        session = client.new_session(self.work)
        self.wait_state('active')
        return client, self.runtime(client, session)

    def wait_stopped(self, client):
        def is_stopped():
            with open(f'/proc/{client.process.pid}/stat', encoding='utf-8') as stat:
                return stat.read().rsplit(')', 1)[1].split()[0] == 'T'
        self.assertTrue(processes.wait_until(is_stopped, PATIENCE), 'it is not stopped')

    def go_on(self, client):
        os.kill(client.process.pid, signal.SIGCONT)
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)

    def opening(self, **keys):
        """A second broker with a request for a session that is not answered yet."""
        second = self.copied(persistence='transient', **keys)
        return second, second.start('session/new', {'cwd': str(self.work), 'mcpServers': []})

    def assert_works(self, client, session, runtime):
        self.edit_both(runtime)
        client.prompt(session, 'say hello', seconds=PATIENCE)
        self.assert_both()
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assertFalse(runtime.exists())
        self.assertEqual([r['state'] for r in self.records()], ['stopped'] * 2)

    def test_while_it_is_destroyed(self):
        first, runtime = self.at_point('keeper.looked')
        (runtime / 'first').write_text('made there\n')
        first.close_stdin()
        self.wait_stopped(first)
        self.assertEqual((self.work / 'first').read_text(), 'made there\n')
        second, asked = self.opening()
        waits = 'waiting for another acp-broker'
        self.assertTrue(processes.wait_until(lambda: waits in second.stderr, PATIENCE),
                        second.stderr)
        self.assertEqual(len(self.records()), 1, 'it was announced meanwhile')
        self.go_on(first)
        session = second.answer(asked, PATIENCE)['sessionId']
        self.assertEqual((runtime / 'first').read_text(), 'made there\n')
        self.assert_works(second, session, runtime)

    def test_who_waits_does_so_for_a_time(self):
        first, _ = self.at_point('keeper.looked')
        first.close_stdin()
        self.wait_stopped(first)
        second, asked = self.opening(sync_lock_timeout='300ms')
        error = self.failure(second.response(asked, PATIENCE), 'TIMEOUT_EXCEEDED')
        self.assertIn('sync-lock-timeout', error['message'])
        self.assertEqual(error['data']['stage'], 'sync')
        self.go_on(first)
        session = second.new_session(self.work)
        self.assert_works(second, session, self.runtime(second, session))

    def test_who_waits_can_be_ended(self):
        first, _ = self.at_point('keeper.looked')
        first.close_stdin()
        self.wait_stopped(first)
        second, asked = self.opening()
        second.close_stdin()
        self.assertEqual(second.wait(PATIENCE), 0, second.stderr)
        self.assertEqual(len(self.records()), 1)
        self.go_on(first)

    def test_before_it_is_looked_whether_somebody_uses_it(self):
        first, runtime = self.at_point('keeper.ending')
        first.close_stdin()
        self.wait_stopped(first)
        second, asked = self.opening()
        session = second.answer(asked, PATIENCE)['sessionId']
        self.go_on(first)
        self.assertIn('the sandbox stays', first.stderr)
        self.assert_works(second, session, runtime)


if __name__ == '__main__':
    case.main()
