# SPDX-License-Identifier: MIT
"""
A real dbus-daemon of the test's own, and on it a stand-in for systemd-logind, which gives locks
against suspending, announces a suspend, and says what it does at a logout.
"""

import os
import shutil
import socket
import struct
import subprocess
import threading

import processes

PROGRAM = shutil.which('dbus-daemon')
CONFIG = '''<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_type="signal"/>
    <allow send_type="method_return"/><allow send_type="error"/><allow receive_type="method_call"/>
    <allow receive_type="method_return"/><allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
</busconfig>
'''
NAME = 'org.freedesktop.login1'
PATH = '/org/freedesktop/login1'
MANAGER = 'org.freedesktop.login1.Manager'
CALL, RETURN, _ERROR, SIGNAL = 1, 2, 3, 4
FIELDS = {'path': (1, 'o'), 'interface': (2, 's'), 'member': (3, 's'), 'reply': (5, 'u'),
          'destination': (6, 's'), 'sender': (7, 's'), 'signature': (8, 'g'), 'fds': (9, 'u')}


def align(data, size):
    return data + bytes(-len(data) % size)


def string(text):
    return struct.pack('<I', len(text)) + text.encode() + b'\0'


def pack(kind, serial, body=b'', **fields):
    packed = b''
    for name, value in fields.items():
        number, sort = FIELDS[name]
        packed = align(packed, 8) + bytes([number, 1, ord(sort), 0])
        if sort == 'u':
            packed += struct.pack('<I', value)
        elif sort == 'g':
            packed += bytes([len(value)]) + value.encode() + b'\0'
        else:
            packed += string(value)
    head = struct.pack('<cBBBIII', b'l', kind, 0, 1, len(body), serial, len(packed))
    return align(head + packed, 8) + body


def sender_of(head):
    at = head.index(bytes([7, 1, ord('s'), 0])) + 4
    length, = struct.unpack_from('<I', head, at)
    return head[at + 4:at + 4 + length].decode()


class SystemBus:
    """For `with`, on a machine that has PROGRAM."""

    def __init__(self, folder):
        self.path = folder / 'bus'
        config = folder / 'bus.conf'
        config.write_text(CONFIG.format(path=self.path))
        self.argv = [PROGRAM, f'--config-file={config}', '--nofork', '--nopidfile']
        self.locks = []  # our ends of the locks that were given
        self.kills = {'KillUserProcesses': False, 'KillOnlyUsers': [], 'KillExcludeUsers': []}
        self.serial = 0

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, env=processes.marked_environment(),
                                        stderr=subprocess.DEVNULL)
        if not processes.wait_until(self.path.exists):
            raise RuntimeError('dbus-daemon does not listen')
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(self.path))
        user = str(os.getuid()).encode().hex()
        self.socket.sendall(f'\0AUTH EXTERNAL {user}\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n'.encode())
        self.input = b''
        while self.input.count(b'\n') < 2:
            self.input += self.socket.recv(4096)
        self.input = self.input.split(b'\n', 2)[2]
        self._call('Hello')
        self._call('RequestName', align(string(NAME), 4) + struct.pack('<I', 0),
                   signature='su')
        self.is_named = threading.Event()
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        if not self.is_named.wait(processes.PATIENCE):
            raise RuntimeError('dbus-daemon gives no name')
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()
        for lock in self.locks:
            os.close(lock)
        self.process.kill()
        self.process.wait()

    @property
    def address(self):
        return f'unix:path={self.path}'

    def announce(self, begins):
        """Says that this machine is about to be suspended, or that it runs again."""
        self._send(SIGNAL, struct.pack('<I', begins), path=PATH, interface=MANAGER,
                   member='PrepareForSleep', signature='b')

    def is_released(self, number):
        """Whether the holder of this lock has closed it."""
        try:
            return os.read(self.locks[number], 1) == b''
        except BlockingIOError:
            return False

    # ---- messages ----

    def _send(self, kind, body=b'', passed=(), **fields):
        self.serial += 1
        socket.send_fds(self.socket, [pack(kind, self.serial, body, **fields)], list(passed))

    def _call(self, member, body=b'', **fields):
        self._send(CALL, body, path='/org/freedesktop/DBus', interface='org.freedesktop.DBus',
                   member=member, destination='org.freedesktop.DBus', **fields)

    def _serve(self):
        while True:
            data = self.socket.recv(4096)
            if not data:
                return
            self.input += data
            while self._take():
                pass

    def _take(self):
        if len(self.input) < 16:
            return False
        kind, = struct.unpack_from('<B', self.input, 1)
        body, serial, fields = struct.unpack_from('<III', self.input, 4)
        begin = 16 + fields + -fields % 8
        if len(self.input) < begin + body:
            return False
        head, text = self.input[:begin], self.input[begin:begin + body]
        self.input = self.input[begin + body:]
        if kind == RETURN and struct.pack('<BBBBI', 5, 1, ord('u'), 0, 2) in head:
            self.is_named.set()  # the answer to the second call
        if kind == CALL and b'Inhibit\0' in head:
            self._give_lock(serial, sender_of(head))
        elif kind == CALL and b'Get\0' in head:
            self._give_property(serial, sender_of(head), text)
        return True

    def _give_property(self, serial, sender, text):
        """Text is the body: an interface and a property, each as a length and a string."""
        value = self.kills[text.rstrip(b'\0').rsplit(b'\0', 1)[-1].decode()]
        if isinstance(value, bool):
            body = b'\1b\0\0' + struct.pack('<I', value)
        else:
            users = b''
            for user in value:
                users = align(users, 4) + string(user)
            body = b'\2as\0' + struct.pack('<I', len(users)) + users
        self._send(RETURN, body, reply=serial, destination=sender, signature='v')

    def _give_lock(self, serial, sender):
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self._send(RETURN, struct.pack('<I', 0), [theirs], reply=serial, destination=sender,
                   signature='h', fds=1)
        os.close(theirs)
        self.locks.append(ours)
