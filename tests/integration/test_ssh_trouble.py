#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Each trouble that a connection can have, at each moment of a session: a clear error within the
stage's deadline, every request answered, nothing left on the host, and no edit lost. If the
connection only becomes slow, everything goes on.
"""

import os

import processes

from processes import PATIENCE
from case import SANITIZED, main, selected
from ssh_case import GRACE
from ssh_scene import BIG, Scene
from together import Together, tests_of

SLOW_SECONDS = 0.1  # each way
AT_ONCE = 8  # scenes at the same time; they wait most of the time

# When a connection has fallen silent, one of these deadlines passes.
SHORT = {'connect-timeout': '5s', 'auth-timeout': '8s', 'alive-interval': '1s',
         'alive-count': '5', **GRACE}

# If a trouble does not end the connection, a deadline does.
NEVER_CONNECTED = {'killed': {'HOST_UNREACHABLE'}, 'dropped': {'HOST_UNREACHABLE'},
                   'frozen': {'TIMEOUT_EXCEEDED'}, 'stalled': {'TIMEOUT_EXCEEDED'}}
NEVER_IN = {'killed': {'LINK_LOST', 'HOST_UNREACHABLE'},
            'dropped': {'LINK_LOST', 'HOST_UNREACHABLE'},
            'frozen': {'TIMEOUT_EXCEEDED'}, 'stalled': {'TIMEOUT_EXCEEDED'}}
CODES = {'connecting': NEVER_CONNECTED, 'authenticating': NEVER_IN}
# The keys of the profile by which libssh2 gives up a silent connection.
NAMES = {'connecting': 'connect-timeout', 'authenticating': 'auth-timeout'}
BEFORE_ANY_RECORD = ('connecting', 'authenticating', 'preparing', 'setup', 'starting')
STAGES = {'connecting': 'prepare', 'authenticating': 'prepare', 'preparing': 'prepare',
          'setup': 'prepare', 'syncing': 'relay', 'starting': 'initialize'}


class Trouble(Scene):
    """One trouble at one moment: play() or play_slowed() is the whole story."""

    transport = 'git'

    def come_to(self, moment, trouble):
        """
        Waits for the moment, then makes the trouble. Returns whether the host has an edit that is
        not here yet.
        """
        self.moment, self.trouble = moment, trouble
        self.runtime_root = self.session = None
        self.waiting = []  # requests that are under way
        (self.work / 'mine.txt').write_text('mine\n')
        getattr(self, f'until_{moment}')()
        late = self.runtime_root is not None
        if late:
            (self.runtime_root / 'late.txt').write_text('late\n')
        getattr(self, f'be_{trouble}')()
        return late

    def play(self, moment, trouble):
        late = self.come_to(moment, trouble)
        self.check_answers()
        if self.session:
            self.check_session()
        if trouble == 'killed' and moment not in ('collecting', 'destroying'):
            self.heal()
            self.go_on()
        else:
            self.client.close_stdin()
            self.check_end(late)
            self.heal()
            self.assert_nothing_runs()
            self.trouble = None
            self.open()
        self.check_recovery(late)

    def play_slowed(self, moment):
        late = self.come_to(moment, 'slowed')
        for raw_id in self.waiting:
            self.client.answer(raw_id, PATIENCE)
        if moment in BEFORE_ANY_RECORD or moment == 'syncing':
            self.session = self.client.new_session(self.work)
        if self.session:
            self.client.prompt(self.session, 'terminal cat mine.txt > theirs.txt')
            self.assertEqual((self.work / 'theirs.txt').read_text(), 'mine\n')
        self.client.close_stdin()
        self.assertEqual(self.client.wait(PATIENCE), 0, self.client.stderr)
        if moment == 'collecting':  # edits after the look are for the next sync
            self.assertEqual((self.work / 'change').read_text(), 'there\n')
        elif late:
            self.assertEqual((self.work / 'late.txt').read_text(), 'late\n')
        self.assert_nothing_runs()

    # ---- moments ----

    def deadlines(self):
        return SHORT if self.trouble in ('frozen', 'stalled') else {}

    def begin(self, **keys):
        self.keys = {**self.deadlines(), 'transport': self.transport, **keys}
        self.client = self.broker(options=self.config(**self.keys))
        self.waiting = [self.client.start('initialize', {'protocolVersion': 1})]

    def open(self, **keys):
        self.begin(**keys)
        self.client.answer(self.waiting.pop())
        self.session = self.client.new_session(self.work)
        self.runtime_root = self.runtime(self.client, self.session)

    def until_connecting(self):
        """The trouble is there before the first byte arrives."""
        if self.trouble == 'dropped':
            self.proxy.cut_after = 10  # of the server's first line
        elif self.trouble == 'killed':
            self.proxy.cut_after = 1
        else:
            getattr(self, f'be_{self.trouble}')()
        self.begin()

    def until_authenticating(self):
        self.shut('keys')
        self.begin()
        self.wait_reached('keys')

    def until_preparing(self):
        self.shut('login')
        self.begin()
        self.wait_reached('login')

    def until_setup(self):
        """A line of the profile's `setup` runs there."""
        seconds = 1 if self.trouble == 'slowed' else 600
        self.begin(setup=f'"touch ran; [ -e go ] || sleep {seconds}"')
        ran = self.sshd.home / 'ran'
        self.assertTrue(processes.wait_until(ran.exists, PATIENCE))

    def until_syncing(self):
        (self.work / 'big').write_bytes(os.urandom(BIG))
        self.shut('sync')
        self.begin()
        self.client.answer(self.waiting.pop())
        self.waiting.append(self.client.start(
            'session/new', {'cwd': str(self.work), 'mcpServers': []}))
        self.wait_reached('sync')

    def until_starting(self):
        """The agent was started and has not written anything."""
        self.keys = self.deadlines()
        agent = self.dir / 'agent'
        flag = '' if self.trouble == 'slowed' else '--never-answer'
        agent.write_text(f'#!/bin/sh\n[ -e "$HOME/silent" ] || exec "$@"\nexec "$@" {flag}\n')
        agent.chmod(0o755)
        (self.sshd.home / 'silent').write_text('')
        self.client = self.broker(options=self.config(**self.keys),
                                  agent=[str(agent), *self.agent_argv()])
        self.waiting = [self.client.start('initialize', {'protocolVersion': 1})]
        self.assertTrue(processes.wait_until(lambda: self.journal('<'), PATIENCE))
        (self.sshd.home / 'silent').unlink()

    def until_idle(self):
        self.open()

    def until_prompt(self):
        self.open()
        lines = ['say here', 'hang']
        if self.trouble in ('dropped', 'slowed'):
            count = 1000000 if self.trouble == 'dropped' else 10000
            lines = ['say here', f'stream {count} 1000']
        self.waiting.append(self.client.start_prompt(self.session, *lines))
        self.client.wait_text('here')

    def until_terminal(self):
        self.open()
        seconds = 1 if self.trouble == 'slowed' else 600
        self.waiting.append(self.client.start_prompt(
            self.session, f'terminal echo there > from-terminal; sleep {seconds}'))
        made = self.runtime_root / 'from-terminal'
        self.assertTrue(processes.wait_until(  # it is there before the text is
            lambda: processes.read_file(made) == b'there\n', PATIENCE))

    def until_collecting(self):
        self.open()
        (self.runtime_root / 'change').write_text('there\n')
        self.shut('collect')
        self.client.close_stdin()
        self.wait_reached('collect')
        self.session = None

    def until_destroying(self):
        self.open(persistence='transient')
        self.shut('destroy')
        self.client.close_stdin()
        self.wait_reached('destroy')
        self.session = self.runtime_root = None

    # ---- troubles ----

    def be_killed(self):
        self.sshd.kill_connections()

    def be_frozen(self):
        self.sshd.freeze()

    def be_stalled(self):
        self.proxy.stall()

    def be_dropped(self):
        self.proxy.cut_after = 100
        self.open_gates()

    def be_slowed(self):
        self.proxy.delay = SLOW_SECONDS
        self.open_gates()

    # ---- what must be true afterwards ----

    def check_answers(self):
        codes = CODES.get(self.moment, {}).get(self.trouble, {'LINK_LOST'})
        for raw_id in self.waiting:
            message = self.client.response(raw_id, PATIENCE)
            error = self.failure(message, message.value['error']['data']['code'])
            self.assertIn(error['data']['code'], codes, error)
            self.assertEqual(error['data']['stage'], STAGES.get(self.moment, 'relay'), error)
            self.assertIs(error['data']['retryable'], True)
            self.assertIn('box' if codes == {'LINK_LOST'} else '', error['message'])
            if self.ssh_client == 'libssh2' and self.trouble in ('frozen', 'stalled'):
                self.assertIn(NAMES.get(self.moment, 'alive-interval'), error['message'])
        self.waiting = []

    def check_session(self):
        """
        The next prompt restores the session if the host is reachable again; otherwise it says why
        not.
        """
        for _ in range(2):  # the first request may be the one that finds the link lost
            prompt = self.client.start_prompt(self.session, 'say anyone?')
            value = self.client.response(prompt, PATIENCE).value
            if 'result' in value:
                self.assertEqual(self.client.texts(self.session)[-1], 'anyone?')
                break
            self.assertIn(value['error']['data']['code'], NEVER_IN[self.trouble] | {'LINK_LOST'}
                          | NEVER_CONNECTED[self.trouble])
            self.assertIs(value['error']['data']['retryable'], True)
        self.assertEqual('result' in value, self.trouble in ('killed', 'dropped'), value)

    def check_end(self, late):
        """If the host can be reached again, everything there is here by now."""
        is_there = self.trouble in ('killed', 'dropped')
        if is_there:
            self.open_gates()
        status = self.client.wait(PATIENCE)
        is_left = not is_there and self.moment not in BEFORE_ANY_RECORD
        never_started = self.moment in BEFORE_ANY_RECORD
        self.assertEqual(status, 1 if is_left or never_started else 0, self.client.stderr)
        if late and is_there:
            self.assertEqual((self.work / 'late.txt').read_text(), 'late\n')

    def go_on(self):
        """The same broker goes on after the host is reachable again."""
        (self.sshd.home / 'go').write_text('')
        if self.moment in ('connecting', 'authenticating', 'preparing', 'starting'):
            self.client.initialize()
        self.session = self.client.new_session(self.work)
        self.runtime_root = self.runtime(self.client, self.session)

    def check_recovery(self, late):
        """Checks that everything that was written on either side is on both."""
        self.assertEqual((self.runtime_root / 'mine.txt').read_text(), 'mine\n')
        if late:
            self.assertEqual((self.work / 'late.txt').read_text(), 'late\n')
        if self.moment == 'terminal':
            self.assertEqual((self.work / 'from-terminal').read_text(), 'there\n')
        self.client.prompt(self.session, 'say back')
        self.assertEqual(self.client.texts(self.session)[-1], 'back')
        self.client.close_stdin()
        self.assertEqual(self.client.wait(PATIENCE), 0, self.client.stderr)
        for message in [one for client in self.clients for one in client.received]:
            self.assertIsNotNone(message.value, message)  # no half of a line


MOMENTS = [name[len('until_'):] for name in vars(Trouble) if name.startswith('until_')]
TROUBLES = [name[len('be_'):] for name in vars(Trouble) if name.startswith('be_')]


def story(moment, trouble):
    if trouble == 'slowed':
        return lambda self: self.play_slowed(moment)
    return lambda self: self.play(moment, trouble)


class ByLibssh2(Trouble):
    ssh_client = 'libssh2'


class ByOpenssh(Trouble):
    ssh_client = 'openssh'


class RsyncByLibssh2(Trouble):
    """The moments in which the transport matters."""

    transport = 'rsync'


for one in (ByLibssh2, ByOpenssh, RsyncByLibssh2):
    for moment in MOMENTS if one.transport == 'git' else ('syncing', 'collecting'):
        for trouble in TROUBLES:
            setattr(one, f'test_{trouble}_while_{moment}', story(moment, trouble))


def load_tests(loader, _tests, _pattern):
    # With sanitizers only the broker's own code matters, and each scene takes longer.
    others = [] if SANITIZED else [ByOpenssh, RsyncByLibssh2]
    return Together(AT_ONCE, tests_of(loader, [ByLibssh2]) + selected(tests_of(loader, others)))


if __name__ == '__main__':
    main()
