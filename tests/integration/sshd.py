# SPDX-License-Identifier: MIT
"""A real OpenSSH sshd on 127.0.0.1, as an ordinary process (tests/support/ssh/start_sshd.sh)."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

import processes

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / 'support/ssh/start_sshd.sh'
PASSWORD = 'sesame'  # the user's, for root alone
TRIES = 5
ROUNDS_MAX = 50  # a process that is stopped may have started another one just before


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


class Sshd:
    """
    For `with`. `config` has lines of sshd_config(5), `shell` is the path of a login shell, `prefix`
    has words that go before the command to run it.
    """

    server = 'sshd'
    parent = '/tmp'
    ready = 'Server listening'

    def __init__(self, config='', shell=None, prefix=()):
        self.extra, self.shell, self.prefix = config, shell, prefix
        self.process = self.folder = None

    def __enter__(self):
        for _ in range(TRIES):
            self._start()
            if self._is_ready():
                return self
            text = self.log()
            self.stop()
            if 'Address already in use' not in text:
                break
        raise RuntimeError(f'sshd does not listen:\n{text}')

    def __exit__(self, *_):
        self.stop()

    def _start(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='sshd-', dir=self.parent))
        self.home = self.folder / 'home'
        self.config = self.folder / 'ssh_config'  # for ssh -F: the host "box"
        self.key = self.folder / 'id'
        self.known_hosts = self.folder / 'known_hosts'
        self.port = free_port()
        (self.folder / 'extra_config').write_text(self.extra)
        words = [*self.prefix, '/bin/sh', str(SCRIPT), str(self.folder), str(self.port)]
        self.process = subprocess.Popen(words + ([self.shell] if self.shell else []),
                                        env={**processes.marked_environment(),
                                             'SERVER': self.server})

    def _is_ready(self):
        processes.wait_until(lambda: self.ready in self.log() or self.process.poll() is not None,
                             step=0.01)
        return self.ready in self.log()

    def alias(self, name, *lines, port=None):
        """Text for an ssh_config: this host by another name, or through another port."""
        text = self.config.read_text().replace('Host box', f'Host {name}', 1)
        if port is not None:
            text = text.replace(f'\tPort {self.port}\n',
                                f'\tPort {port}\n\tHostKeyAlias [127.0.0.1]:{self.port}\n')
        return text + ''.join(f'\t{line}\n' for line in lines)

    def log(self):
        return processes.read_file(self.folder / 'log').decode('utf-8', 'replace')

    # ---- its processes ----

    def connections(self):
        """The direct children of sshd: one for each connection."""
        return [pid for pid in processes.descendants(self.process.pid)
                if processes.parent_of(pid) == self.process.pid]

    def _signal_below(self, number):
        for pid in processes.descendants(self.process.pid):
            processes.kill(pid, number)

    def _stop_below(self):
        """
        Before they are killed: otherwise one could start a process that we do not see, and a guard
        could stop that process just before the guard is killed.
        """
        stopped = None
        for _ in range(ROUNDS_MAX):
            below = processes.descendants(self.process.pid)
            if below == stopped:
                break
            for pid in below:
                processes.kill(pid, signal.SIGSTOP)
            stopped = below

    def freeze(self):
        processes.kill(self.process.pid, signal.SIGSTOP)
        self._signal_below(signal.SIGSTOP)

    def thaw(self):
        self._signal_below(signal.SIGCONT)
        processes.kill(self.process.pid, signal.SIGCONT)

    def names_in_home(self):
        """
        The names in the home. Leaves out .cache if it has only the runner, which stays for the next
        session.
        """
        names = {path.name for path in self.home.iterdir()}
        kept = {path.name.split('.')[0] for path in (self.home / '.cache').rglob('*')
                if path.is_file()}
        return names - {'.cache'} if kept == {'acp-runner'} else names

    def kill_connections(self):
        """Sends SIGKILL to all processes of each connection; sshd itself goes on listening."""
        self._stop_below()
        self._signal_below(signal.SIGKILL)

    def stop(self):
        """Kills sshd, its connections and their processes, and removes its folder."""
        if self.process is not None:
            processes.kill(self.process.pid, signal.SIGSTOP)
            self._stop_below()
            below = processes.descendants(self.process.pid)
            for pid in [*below, self.process.pid]:
                processes.kill(pid)
            self.process.wait()
            processes.wait_until(lambda: not any(map(processes.is_running, below)))
            self.process = None
            shutil.rmtree(self.folder, ignore_errors=True)


class Dropbear(Sshd):
    """For root alone. It gives commands no session of their own."""

    server = 'dropbear'
    ready = 'Not backgrounding'


class TinySshd(Sshd):
    """For root alone. It has one channel for each connection, and few algorithms."""

    server = 'tinysshd'
    ready = 'Listening on'
    parent = '/root'  # it takes no key from a folder below one that everybody can write to


def can_be_started():
    """Whether this machine has what the fixture needs."""
    return shutil.which('ssh-keygen') is not None and os.access('/usr/sbin/sshd', os.X_OK)
