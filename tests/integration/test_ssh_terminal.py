#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The login of an agent on another host: the editor starts the broker in a terminal, which stands for
a terminal there. The host is a real sshd; the user's terminal is a pty of this test.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import processes

from case import AGENT, main
from processes import PATIENCE
from ssh_case import SshCase

# What a login does there, for each word that is typed.
PROBE = r"""
import os, signal, sys, termios, tty
def say(*words):
    os.write(1, (' '.join(map(str, words)) + '\n').encode())  # also in a handler
def on_interrupt(*_):
    say('interrupted')
def on_resized(*_):
    size = os.get_terminal_size()
    say('resized', size.lines, size.columns)
signal.signal(signal.SIGINT, on_interrupt)
signal.signal(signal.SIGWINCH, on_resized)
size = os.get_terminal_size()
say('size', size.lines, size.columns, os.environ.get('TERM'), os.environ['HOME'],
    os.environ.get('EXTRA'), os.getcwd(), os.isatty(2), os.environ.get('ACP_BROKER_LOGIN'))
def listen():
    word = sys.stdin.readline().strip()
    if word == 'raw':
        old = termios.tcgetattr(0)
        tty.setraw(0)
        os.write(1, b'RAW:')
        got = b''
        while len(got) < 256:
            got += os.read(0, 256)
        os.write(1, got)
        termios.tcsetattr(0, termios.TCSANOW, old)
    elif word == 'much':
        os.write(1, b'x' * 79 + b'\n')
        for number in range(20000):
            os.write(1, b'line %06d\n' % number)
        sys.exit(5)
    elif word == 'apart':
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in range(3):
            os.close(number)
        while True:
            signal.pause()
    elif word == 'killed':
        os.kill(os.getpid(), signal.SIGTERM)
    elif word == 'bye':
        say('see you')
        sys.exit(7)
    else:
        say('heard', word)
while True:
    listen()
"""
METHOD = ('{"id":"probe","name":"Probe","type":"terminal","args":["--probe"],'
          '"env":{"EXTRA":"more","TERM_PROGRAM":"x"},'
          '"_meta":{"terminal-auth":{"command":"touch","args":["PWNED"]},"kept":1}}')
ROWS, COLUMNS = 33, 101


class UserTerminal:
    """A terminal of this machine, with a program in it."""

    def __init__(self, argv, env, cwd):
        self.keyboard, terminal = pty.openpty()
        self.shown = b''
        self.resize(ROWS, COLUMNS)
        self.modes = termios.tcgetattr(terminal)
        self.terminal = terminal  # stays open: its modes can be read after the program's end

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
            argv, cwd=cwd, env=env, stdin=terminal, stdout=terminal, stderr=terminal,
            preexec_fn=take_terminal)

    def resize(self, rows, columns):
        fcntl.ioctl(self.keyboard, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def type(self, data):
        while data:
            data = data[os.write(self.keyboard, data[:1024]):]

    def read(self):
        """Reads what there is; false if nothing came for a moment."""
        if not select.select([self.keyboard], [], [], 0.05)[0]:
            return False
        self.shown += os.read(self.keyboard, 65536)
        return True

    def wait_shown(self, wanted):
        end = time.monotonic() + PATIENCE
        while wanted not in self.shown:
            if not self.read():
                assert time.monotonic() < end and self.process.poll() is None, self.shown
        return self.shown

    def wait(self):
        """Its exit status, once everything is shown."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, self.shown
            self.read()
        while self.read():
            pass
        return self.process.returncode

    def is_restored(self):
        return termios.tcgetattr(self.terminal) == self.modes

    def is_raw(self):
        return not termios.tcgetattr(self.terminal)[3] & (termios.ICANON | termios.ISIG)

    def is_waiting(self):
        """Nobody reads what is typed; the terminal neither changes nor echoes it."""
        modes = termios.tcgetattr(self.terminal)
        return (modes[3] & (termios.ICANON | termios.ECHO | termios.ISIG) == termios.ISIG
                and not modes[0] & (termios.ICRNL | termios.INLCR | termios.IXON))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.keyboard)
        os.close(self.terminal)


class TerminalCase(SshCase):
    more = {'outlives': 'never'}

    def setUp(self):
        super().setUp()
        probe = self.dir / 'probe.py'
        probe.write_text(PROBE)
        self.agent = self.dir / 'agent'
        self.agent.write_text('#!/bin/sh\n'
                              f'if [ "$1" = --probe ]; then exec python3 {probe}; fi\n'
                              f'exec {AGENT} "$@" --terminal-auth --auth-methods \'{METHOD}\'\n')
        self.agent.chmod(0o755)

    def config(self, *args, **keys):
        return super().config(*args, **{**self.more, **keys})

    def offered(self, **keys):
        """The methods that the editor sees, by id; and the broker's log."""
        client = self.broker(options=self.config(**keys), agent=[str(self.agent)])
        result = client.initialize({'auth': {'terminal': True}})
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        return {method['id']: method for method in result['authMethods']}, client.stderr

    def open(self, name='probe', within=(), **keys):
        method = self.offered(**keys)[0][name]
        argv = self.broker_argv(*self.config(**keys), agent=[str(self.agent)])
        env = dict(self.environment(), TERM='xterm-direct', **method['env'])
        terminal = UserTerminal([*within, *argv, *method['args']], env, self.work)
        self.addCleanup(terminal.close)
        return terminal

    def began(self, **keys):
        terminal = self.open(**keys)
        terminal.wait_shown(b'size ')
        terminal.type(b'one\n')
        terminal.wait_shown(b'heard one')
        return terminal

    def ends(self, terminal, status):
        self.assertEqual(terminal.wait(), status, terminal.shown)
        self.assertTrue(terminal.is_restored())
        self.assert_nothing_runs()

    def notes(self):
        return sorted((self.state / 'logins').iterdir())


class Login(TerminalCase):
    def test_the_editor_gets_a_token_and_no_command(self):
        methods, _ = self.offered()
        method = methods['probe']
        self.assertEqual(method['args'], [])
        self.assertEqual(list(method['env']), ['ACP_BROKER_LOGIN'])
        self.assertEqual(method['_meta'], {'kept': 1})
        self.assertIn('login', methods)

    def test_the_agent_s_own_login_runs_there(self):
        terminal = self.open('login')
        terminal.wait_shown(b'password: ')
        terminal.type(b'open sesame\r')
        terminal.wait_shown(b'welcome')
        self.assertIn(b'terminal: yes, SCRIPTED_LOGIN=yes', terminal.shown)
        self.ends(terminal, 0)
        self.assertEqual(terminal.shown.count(b'open sesame'), 1)  # the echo of one terminal
        self.assertEqual(len(self.notes()), 2)  # of three: it was used

    def test_it_has_the_size_the_type_and_the_home(self):
        terminal = self.began()
        self.assertIn(f'size {ROWS} {COLUMNS} xterm-direct {self.sshd.home} more '
                      f'{self.sshd.home} True None\r\n'.encode(), terminal.shown)
        self.assertTrue(terminal.is_raw())
        terminal.type(b'bye\n')
        terminal.wait_shown(b'see you')
        self.ends(terminal, 7)

    def test_ctrl_c_and_new_sizes_reach_it(self):
        terminal = self.began()
        terminal.type(b'\x03')
        terminal.wait_shown(b'interrupted')
        terminal.resize(50, 132)
        terminal.wait_shown(b'resized 50 132')
        terminal.type(b'bye\n')
        self.ends(terminal, 7)

    def test_every_byte_is_passed_on_in_both_directions(self):
        terminal = self.began()
        terminal.type(b'raw\n')
        terminal.wait_shown(b'RAW:')
        terminal.type(bytes(range(256)))
        terminal.wait_shown(b'RAW:' + bytes(range(256)))
        terminal.type(b'bye\n')
        self.ends(terminal, 7)

    def test_much_output_comes_whole_before_the_end(self):
        terminal = self.began()
        terminal.type(b'much\n')
        self.ends(terminal, 5)
        lines = [line for line in terminal.shown.split(b'\r\n') if line.startswith(b'line ')]
        self.assertEqual(lines, [b'line %06d' % number for number in range(20000)])

    def test_the_signal_that_ends_it_is_told_as_by_a_shell(self):
        terminal = self.began()
        terminal.type(b'killed\n')
        self.ends(terminal, 128 + signal.SIGTERM)
        self.assertEqual(len(self.notes()), 3)  # the login can be tried again

    def test_a_signal_to_the_broker_ends_it_and_restores_the_terminal(self):
        terminal = self.began()
        terminal.process.send_signal(signal.SIGTERM)
        self.ends(terminal, 128 + signal.SIGTERM)

    def test_a_shell_that_stops_it_has_the_terminal_in_its_own_modes(self):
        terminal = self.began(within=['sh', '-mc', '"$@"; read word; fg', 'sh'])
        shell = terminal.process.pid
        broker, = [pid for pid in processes.descendants(shell)
                   if processes.parent_of(pid) == shell]
        os.kill(broker, signal.SIGTSTP)
        self.assertTrue(processes.wait_until(terminal.is_restored, PATIENCE))
        terminal.type(b'go on\n')
        self.assertTrue(processes.wait_until(terminal.is_raw, PATIENCE))
        terminal.type(b'bye\n')
        self.ends(terminal, 7)

    def test_it_is_raw_again_after_a_stop_that_nobody_can_catch(self):
        terminal = self.began()
        terminal.process.send_signal(signal.SIGSTOP)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(terminal.process.pid, os.WUNTRACED)[1]))
        termios.tcsetattr(terminal.terminal, termios.TCSANOW, terminal.modes)  # as a shell does
        terminal.process.send_signal(signal.SIGCONT)
        self.assertTrue(processes.wait_until(terminal.is_raw, PATIENCE))
        terminal.type(b'bye\n')
        self.ends(terminal, 7)

    def test_it_goes_on_if_no_shell_could_continue_it(self):
        terminal = self.began()
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.type(b'two\n')
        terminal.wait_shown(b'heard two')
        self.assertTrue(processes.wait_until(terminal.is_raw, PATIENCE))
        terminal.type(b'bye\n')
        self.ends(terminal, 7)

    def test_a_process_that_gives_its_terminal_up_does_not_hold_the_user_s(self):
        terminal = self.began()
        terminal.type(b'apart\n')
        self.assertTrue(processes.wait_until(terminal.is_waiting, PATIENCE))
        terminal.type(b'\x03')
        self.ends(terminal, 128 + signal.SIGINT)

    def test_a_command_that_is_not_there_is_named(self):
        method = self.offered()[0]['probe']
        argv = self.broker_argv(*self.config(), agent=['no-such-agent'])
        terminal = UserTerminal(argv, dict(self.environment(), **method['env']), self.work)
        self.addCleanup(terminal.close)
        self.ends(terminal, 1)
        self.assertNames(terminal.shown.decode(), 'no-such-agent | login | no such command')

    def test_a_closed_terminal_ends_it(self):
        terminal = self.began()
        os.close(terminal.terminal)
        os.close(terminal.keyboard)
        self.assertNotEqual(terminal.process.wait(PATIENCE), 0)
        terminal.keyboard, terminal.terminal = os.pipe()  # for close
        self.assert_nothing_runs()

    def test_without_a_terminal_it_says_so(self):
        method = self.offered()[0]['probe']
        argv = self.broker_argv(*self.config(), agent=[str(self.agent)])
        said = subprocess.run(argv, cwd=self.work, env=dict(self.environment(), **method['env']),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        self.assertEqual((said.returncode, said.stdout), (1, ''), said.stderr)
        self.assertNames(said.stderr, f'{self.agent} | login | no terminal')

    def test_a_lost_connection_ends_it_with_an_error(self):
        terminal = self.began()
        self.sshd.kill_connections()
        self.ends(terminal, 1)
        self.assertNames(terminal.shown.decode(), f'{self.agent} | login | box')


class Survives(TerminalCase):
    more = {'runner': 'auto', 'outlives': 'auto'}

    def test_it_goes_on_after_a_lost_connection(self):
        terminal = self.began()
        self.sshd.kill_connections()
        terminal.wait_shown(b'the login goes on\r\n')
        self.assertNames(terminal.shown.decode(), 'box was lost | Ctrl-C ends it')
        terminal.type(b'two\n')
        terminal.wait_shown(b'heard two')
        self.assertTrue(processes.wait_until(terminal.is_raw, PATIENCE))
        terminal.type(b'bye\n')
        self.ends(terminal, 7)

    def test_what_is_typed_meanwhile_arrives_unchanged_and_is_not_echoed(self):
        terminal = self.began()
        terminal.type(b'raw\n')
        terminal.wait_shown(b'RAW:')
        self.sshd.freeze()
        self.addCleanup(self.sshd.thaw)
        self.sshd.kill_connections()
        terminal.wait_shown(b'Ctrl-C ends it')
        self.assertTrue(processes.wait_until(terminal.is_waiting, PATIENCE))
        acts = b'\x03\x1a\x1c'  # on the broker: Ctrl-C, Ctrl-Z, Ctrl-\
        typed = bytes(byte for byte in range(256) if byte not in acts) + b'pw\r'
        terminal.type(typed)
        self.sshd.thaw()
        terminal.wait_shown(b'the login goes on\r\n')
        terminal.wait_shown(typed)
        self.assertEqual(terminal.shown.count(b'ABCDEFGHIJKLMNOPQRSTUVWXYZ'), 1)
        terminal.type(b'bye\n')
        self.ends(terminal, 7)

    def test_ctrl_c_ends_it_while_the_host_cannot_be_reached(self):
        terminal = self.began(orphan_grace='1s')
        self.sshd.freeze()
        self.addCleanup(self.sshd.thaw)
        self.sshd.kill_connections()
        terminal.wait_shown(b'Ctrl-C ends it')
        self.assertTrue(processes.wait_until(terminal.is_waiting, PATIENCE))
        terminal.type(b'\x03')
        self.assertEqual(terminal.wait(), 128 + signal.SIGINT, terminal.shown)
        self.assertTrue(terminal.is_restored())


class ByProgram(TerminalCase):
    ssh_client = 'openssh'

    def test_it_works_with_the_ssh_program(self):
        terminal = self.began()
        terminal.type(b'raw\n')
        terminal.wait_shown(b'RAW:')
        terminal.type(bytes(range(256)))
        terminal.wait_shown(b'RAW:' + bytes(range(256)))
        terminal.type(b'bye\n')
        self.ends(terminal, 7)


class Scripts(TerminalCase):
    runner = 'never'

    def test_without_the_runner_it_is_not_offered(self):
        methods, log = self.offered()
        self.assertNotIn('probe', methods)
        self.assertNotIn('login', methods)
        self.assertNames(log, 'login | not offered | runner = never')


if __name__ == '__main__':
    main()
