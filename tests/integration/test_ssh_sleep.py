#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
An announced suspend: the runner on a host keeps the run of a machine that said that it would be
back, although its connection ended while it was in use.
"""

import os
import signal
import unittest

import processes

from case import main
from processes import PATIENCE
from ssh_case import SshCase
from system_bus import PROGRAM, SystemBus


@unittest.skipUnless(PROGRAM, 'there is no dbus-daemon')
class Sleep(SshCase):
    def setUp(self):
        super().setUp()
        self.bus = SystemBus(self.dir)
        self.bus.__enter__()
        self.other = self.dir / 'other'
        self.other.mkdir()

    def clean_up(self):
        self.bus.__exit__()
        super().clean_up()

    def config(self, *args, **keys):
        return super().config(*args, **{'outlives': 'auto', 'orphan-grace': '1s', **keys})

    def begin(self, work, bus):
        env = {**self.environment(), 'DBUS_SYSTEM_BUS_ADDRESS': bus}
        client = self.broker(options=self.config(), env=env)
        client.initialize()
        return client, client.new_session(work)

    def agents(self):
        return {pid for pid in self.remote() if processes.name_of(pid) == 'scripted-agent'}

    def wait(self, condition, *clients):
        self.assertTrue(processes.wait_until(condition, PATIENCE),
                        '\n'.join(client.stderr for client in clients))

    def end(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)

    def test_a_run_waits_for_a_machine_that_announced_a_suspend(self):
        client, session = self.begin(self.work, self.bus.address)
        agents = self.agents()
        self.wait(lambda: len(self.bus.locks) == 1, client)
        unwarned, _ = self.begin(self.other, 'unix:path=/nonexistent')
        gate = self.sshd.home / 'go'
        os.mkfifo(gate)
        root = self.runtime(client, session)
        waiting = client.start_prompt(
            session, 'pid', f'terminal echo there > made; read line < {gate}', 'pid')
        self.wait((root / 'made').exists, client)
        self.assertFalse(self.bus.is_released(0))
        self.bus.announce(True)
        self.wait(lambda: self.bus.is_released(0), client)
        # The answer comes from the host, which has got the announcement before the question.
        health = client.answer(client.start('_broker/health', {}))
        self.assertTrue(health['isHealthy'], health)
        # The machine sleeps. The end of the connections reaches the host at once.
        for one in (client, unwarned):
            os.kill(one.pid, signal.SIGSTOP)
        self.sshd.kill_connections()
        self.wait(lambda: len(self.agents()) == 1, unwarned)
        self.assertEqual(self.agents(), agents)
        for one in (client, unwarned):
            os.kill(one.pid, signal.SIGCONT)
        self.bus.announce(False)
        gate.write_text('word\n')
        self.assertEqual(client.answer(waiting)['stopReason'], 'end_turn')
        pids = [text for text in client.texts(session) if text.startswith('pid ')]
        self.assertEqual(pids, [pids[0]] * 2)
        self.wait(lambda: len(self.bus.locks) == 2, client)  # for the next suspend
        self.end(client)
        unwarned.close_stdin()
        unwarned.wait(PATIENCE)


if __name__ == '__main__':
    main()
