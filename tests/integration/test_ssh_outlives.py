#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Turns on another host that survive the loss of the connection: the test kills a real sshd's
connection in the middle of a turn. The editor gets everything once, as without the loss.
"""

import os
import shlex
import shutil
import signal
import subprocess

import processes

from case import AGENT, BROKER, main
from processes import PATIENCE
from ssh_case import SshCase
from together import Together, tests_of

AT_ONCE = 4
UPDATES = 4000
SIZE = 2000
CUTS = 5


class Away(SshCase):
    """A session on another host that survives the loss of its connection."""

    more = {}

    def config(self, *args, **keys):
        return super().config(*args, **{'runner': 'auto', 'outlives': 'auto', **self.more, **keys})

    def begin(self):
        client, session = self.opened()
        client.prompt(session, 'say ready')
        return client, session

    def end(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assert_nothing_runs()


class Outlives(Away):
    def own_calls(self, client, word):
        """The updates of the broker's own tool calls with this word in the title."""
        updates = [message.params['update'] for message in client.received
                   if message.method == 'session/update']
        return [update for update in updates
                if str(update.get('toolCallId', '')).startswith('acp-broker-')
                and word in str(update.get('title', ''))]

    def check_shown(self, client, cuts):
        """Checks that each loss is one tool call, and that the tool call ends."""
        begun = [update for update in self.own_calls(client, 'unreachable')
                 if update['sessionUpdate'] == 'tool_call']
        ended = self.own_calls(client, 'reconnected')
        self.assertEqual([update['status'] for update in begun], ['in_progress'] * cuts)
        self.assertEqual([(update['toolCallId'], update['status']) for update in ended],
                         [(update['toolCallId'], 'completed') for update in begun])

    def cut(self, client, count):
        """
        Kills the connection, and waits until the broker has connected again for the `count`th time.
        """
        self.sshd.kill_connections()
        self.assertTrue(processes.wait_until(
            lambda: len(self.own_calls(client, 'reconnected')) >= count, PATIENCE), client.stderr)

    def gate(self):
        """A FIFO: a command that reads it waits until somebody writes."""
        path = self.sshd.home / 'go'
        os.mkfifo(path)
        return path

    def streamed(self, client):
        return [text for text in client.texts() if text[:8].isdigit()]

    def test_a_turn_loses_and_doubles_nothing(self):
        client, session = self.begin()
        gate = self.gate()  # the turn must be open at each loss
        waiting = client.start_prompt(session, f'stream {UPDATES} {SIZE}',
                                      f'terminal read line < {gate}', 'say over')
        for number in range(1, CUTS + 1):
            enough = number * UPDATES // (CUTS + 2)
            self.assertTrue(processes.wait_until(
                lambda: len(self.streamed(client)) >= enough, PATIENCE), client.stderr)
            self.cut(client, number)
        gate.write_text('word\n')
        self.assertEqual(client.answer(waiting)['stopReason'], 'end_turn')
        self.assertEqual([text.split()[0] for text in self.streamed(client)],
                         [f'{number:08}' for number in range(UPDATES)])
        self.assertEqual(client.texts()[-1], 'over')
        self.check_shown(client, CUTS)
        self.end(client)

    def test_the_agent_and_its_terminal_are_the_same_afterwards(self):
        client, session = self.begin()
        root = self.runtime(client, session)
        gate = self.gate()
        terminal = f'terminal echo there > made; read line < {gate}; echo said $line'
        waiting = client.start_prompt(session, 'pid', terminal, 'pid')
        self.assertTrue(processes.wait_until((root / 'made').exists))
        self.cut(client, 1)
        gate.write_text('word\n')
        self.assertEqual(client.answer(waiting)['stopReason'], 'end_turn')
        texts = client.texts(session)
        pids = [text for text in texts if text.startswith('pid ')]
        self.assertEqual(pids, [pids[0]] * 2)
        self.assertTrue([text for text in texts if 'said word' in text], texts)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.check_shown(client, 1)
        self.end(client)

    def test_a_killed_broker_leaves_nothing_after_orphan_grace(self):
        self.more = {'orphan-grace': '1s'}
        client, session = self.begin()
        root = self.runtime(client, session)
        client.start_prompt(session, 'terminal echo there > made; sleep 600')
        self.assertTrue(processes.wait_until((root / 'made').exists))
        os.kill(client.pid, signal.SIGKILL)
        self.assert_nothing_runs()


class WithoutTheRunner(SshCase):
    def test_it_is_said_that_nothing_outlives_the_connection(self):
        client = self.broker(options=self.config(runner='never', outlives='auto'))
        told = client.initialize()['_meta']['broker']
        self.assertEqual(len(told['warnings']), 1)
        self.assertNames(told['warnings'][0], 'outlives | runner = never')
        self.assertNames(told['outlives'], 'no | runner = never')

    def test_check_says_so(self):
        argv = [BROKER, 'check', *self.config(runner='never', outlives='auto'), '--', AGENT]
        done = subprocess.run(argv, env=self.environment(), capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNames(done.stdout, 'warning | outlives | runner = never')


class OutlivesByOpenssh(Outlives):
    ssh_client = 'openssh'


class SlowSsh(Away):
    """The ssh program needs a tenth of a second for each of its steps."""

    ssh_client = 'openssh'

    def environment(self):
        tools = self.dir / 'tools'
        tools.mkdir(exist_ok=True)
        slow = ('strace', '-qq', '-o', '/dev/null', '-e', 'trace=poll,ppoll', '-e',
                'inject=poll,ppoll:delay_exit=100000', shutil.which('ssh'))
        (tools / 'ssh').write_text(f'#!/bin/sh\nexec {shlex.join(slow)} "$@"\n')
        (tools / 'ssh').chmod(0o755)
        env = super().environment()
        return {**env, 'PATH': f'{tools}:{env["PATH"]}'}

    def test_the_end_of_a_session_reaches_the_host(self):
        client, _ = self.begin()
        self.end(client)


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [Outlives, OutlivesByOpenssh, SlowSsh,
                                      WithoutTheRunner]))


if __name__ == '__main__':
    main()
