# SPDX-License-Identifier: MIT
"""A chain of network namespaces, each linked to the next: 0 - 1 - 2 - …"""

import contextlib
import ctypes
import os
import shutil
import subprocess

HOLD_SECONDS = 1800  # a namespace ends with the test, or after this time at the latest

CLONE_NEWNET = 0x40000000
NOBODY = '02:00:00:00:00:01'  # no card has this address


class Chain:
    """
    For `with`. A sleeping process holds each namespace, and nothing outside has a name for it.
    """

    def __init__(self, count):
        self.count = count
        self.holders = []

    def __enter__(self):
        try:
            for _ in range(self.count):
                self._add()
            for left in range(self.count - 1):
                self._link(left, left + 1)
        except Exception:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for holder in self.holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()
        self.holders = []

    def _add(self):
        holder = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'echo; exec sleep "$0"',
                                   str(HOLD_SECONDS)], stdout=subprocess.PIPE)
        self.holders.append(holder)
        if holder.stdout.readline() != b'\n':
            raise OSError('no network namespace can be made')
        self.ip(-1, 'link', 'set', 'lo', 'up')

    def _link(self, left, right):
        self.ip(left, 'link', 'add', 'right', 'type', 'veth', 'peer', 'name', 'left', 'netns',
                str(self.holders[right].pid))
        for number, name in ((left, 'right'), (right, 'left')):
            self.ip(number, 'address', 'add', f'{self.address(number, name)}/24', 'dev', name)
            self.ip(number, 'link', 'set', name, 'up')

    def address(self, number, name='left'):
        """
        The address of one end of a link. In a namespace, the link to its right is named "right".
        """
        return f'10.77.{number if name == "right" else number - 1}.{1 if name == "right" else 2}'

    def inside(self, number):
        """The words to put before a command to run it in that namespace."""
        return ['nsenter', f'--net=/proc/{self.holders[number].pid}/ns/net']

    @contextlib.contextmanager
    def entered(self, number):
        """For `with`: sockets that this thread makes meanwhile are in that namespace."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open('/proc/thread-self/ns/net', encoding='ascii') as before, \
                open(f'/proc/{self.holders[number].pid}/ns/net', encoding='ascii') as there:
            if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), 'entering a network namespace')
            try:
                yield
            finally:
                libc.setns(before.fileno(), CLONE_NEWNET)

    def ip(self, number, *words):
        subprocess.run([*self.inside(number), 'ip', *words], check=True, timeout=30)

    def set_link(self, left, state):
        """Takes the link to the right of a namespace "down", or "up" again."""
        self.ip(left, 'link', 'set', 'right', state)

    def lose_packets(self, number, name, is_lost):
        """
        While `is_lost`, every packet that leaves a namespace by this end of a link gets lost, and
        no process and no kernel on either side is told: the packets go to a card that is not there.
        """
        other = (number + 1, 'left') if name == 'right' else (number - 1, 'right')
        if is_lost:
            self.ip(number, 'neighbour', 'replace', self.address(*other), 'lladdr', NOBODY, 'dev',
                    name, 'nud', 'permanent')
        else:
            self.ip(number, 'neighbour', 'del', self.address(*other), 'dev', name)


def can_be_made():
    """Whether this machine lets the test have namespaces."""
    if os.getuid() != 0 or not all(map(shutil.which, ('ip', 'unshare', 'nsenter'))):
        return False
    try:
        with Chain(2):
            return True
    except (OSError, subprocess.SubprocessError):
        return False
