#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A login to a host needs an answer that only the user knows: ssh asks in the terminal, or in a
window.
"""

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time

import case
import processes
from ssh_case import SshCase
from processes import PATIENCE

PASSPHRASE = 'open, sesame street'
PROMPT = b"Enter passphrase for key '"


def sit_down():
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)


def is_shown(keyboard):
    """Whether the terminal shows what is typed."""
    return bool(termios.tcgetattr(keyboard)[3] & termios.ECHO)


class Asked(SshCase):
    """A key with a passphrase, which no ssh-agent has."""
    ssh_client = 'auto'

    def setUp(self):
        super().setUp()
        self.locked = self.sshd.folder / 'locked'
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', PASSPHRASE, '-f', self.locked],
                       check=True)
        with open(self.sshd.folder / 'authorized_keys', 'a', encoding='ascii') as keys:
            keys.write((self.sshd.folder / 'locked.pub').read_text())
        config = self.sshd.config
        config.write_text(config.read_text().replace(f'{self.sshd.key}\n', f'{self.locked}\n'))
        # Otherwise test-provider cuts the connection, and connects and asks once more.
        self.keys = {'auth-timeout': '60s', 'sync': 'none', 'outlives': 'never'}

    def argv(self, **keys):
        return [case.BROKER, *self.config(**self.keys, **keys), 'test-provider']

    def environment_without(self, **more):
        env = {**self.environment(), **more}
        for name in ('SSH_ASKPASS', 'SSH_ASKPASS_REQUIRE', 'SSH_AUTH_SOCK'):
            if name not in more:
                env.pop(name, None)
        return env

    def run_alone(self, **env):
        """Runs without a terminal; returns the exit status and the output, with errors."""
        done = subprocess.run(self.argv(), cwd=self.work, env=self.environment_without(**env),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              start_new_session=True, check=False, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def start_in_terminal(self, **env):
        keyboard, terminal = pty.openpty()
        self.addCleanup(os.close, keyboard)
        process = subprocess.Popen(self.argv(), cwd=self.work, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=terminal,
                                   env=self.environment_without(**env),
                                   start_new_session=True, preexec_fn=sit_down)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(terminal)
        return process, keyboard

    def read_until(self, keyboard, words):
        """Reads the terminal until these words or the end."""
        shown = b''
        end = time.monotonic() + PATIENCE
        while words not in shown and time.monotonic() < end:
            if select.select([keyboard], [], [], 0.1)[0]:
                try:
                    shown += os.read(keyboard, 4096)
                except OSError:
                    break
        return shown

    def wait_shown(self, keyboard, value):
        self.assertTrue(processes.wait_until(lambda: is_shown(keyboard) == value))

    # ---- in a terminal ----

    def test_the_passphrase_is_asked_for_in_the_terminal(self):
        process, keyboard = self.start_in_terminal()
        self.assertIn(PROMPT, self.read_until(keyboard, PROMPT + str(self.locked).encode()))
        self.wait_shown(keyboard, False)
        os.write(keyboard, PASSPHRASE.encode() + b'\n')
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, out)
        self.assertTrue(is_shown(keyboard))
        rest = self.read_until(keyboard, b'\0')
        self.assertNotIn(PASSPHRASE.encode(), out + rest)

    def test_a_wrong_one_is_asked_for_again(self):
        process, keyboard = self.start_in_terminal()
        self.read_until(keyboard, PROMPT)
        self.wait_shown(keyboard, False)
        os.write(keyboard, b'wrong\n')
        self.assertIn(PROMPT, self.read_until(keyboard, PROMPT))
        self.wait_shown(keyboard, False)
        os.write(keyboard, PASSPHRASE.encode() + b'\n')
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, out)

    def test_who_ends_it_while_it_asks_sees_again_what_is_typed(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process, keyboard = self.start_in_terminal()
            self.read_until(keyboard, PROMPT)
            self.wait_shown(keyboard, False)
            process.send_signal(number)
            process.communicate(timeout=PATIENCE)
            self.assertNotEqual(process.returncode, 0)
            self.wait_shown(keyboard, True)

    # ---- without a terminal ----

    def test_a_window_asks_where_there_is_no_terminal(self):
        window = self.dir / 'window'
        window.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> {self.dir}/asked\n'
                          f'echo "{PASSPHRASE}"\n')
        window.chmod(0o755)
        status, text = self.run_alone(SSH_ASKPASS=str(window))
        self.assertEqual(status, 0, text)
        self.assertIn(str(self.locked), (self.dir / 'asked').read_text())
        process, keyboard = self.start_in_terminal(SSH_ASKPASS=str(window),
                                                   SSH_ASKPASS_REQUIRE='prefer')
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, out)
        self.assertNotIn(PROMPT, self.read_until(keyboard, b'\0'))
        self.assertEqual(len((self.dir / 'asked').read_text().splitlines()), 2)

    def test_nobody_to_ask_is_told(self):
        status, text = self.run_alone()
        self.assertEqual(status, 1, text)
        self.assertIn('no passphrase-command is set', text)
        status, text = self.run_alone(SSH_ASKPASS='/bin/false', SSH_ASKPASS_REQUIRE='never')
        self.assertEqual(status, 1, text)
        self.assertIn('no passphrase-command is set', text)

    def test_the_other_client_is_named_where_it_may_not_be_taken(self):
        self.keys['ssh-client'] = 'libssh2'
        status, text = self.run_alone(SSH_ASKPASS='/bin/false')
        self.assertEqual(status, 1, text)
        self.assertNames(text, 'passphrase | asked for | ssh-client = openssh')


if __name__ == '__main__':
    case.main()
