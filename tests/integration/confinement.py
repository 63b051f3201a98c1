# SPDX-License-Identifier: MIT
"""For tests of the confinement of agents; as root they become another user."""

import atexit
import ctypes
import os
import shutil
import sys

USER = 12345
FSOPEN = 430  # this and the next are the same on all processors
LANDLOCK_CREATE_RULESET = 444

# What a process in a cell may have open when it starts; /dev/null is the cell's.
INNER_TARGETS = (r'^(/dev/null|(pipe|socket):\[\d+\]|'
                 r'anon_inode:\[?(eventpoll|eventfd|timerfd|signalfd)\]?)$')


def confinement():
    """`required`, unless the kernel lacks Landlock's scopes, which `required` needs."""
    version = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
    return 'required' if version >= 6 else 'yes'


CONFINE = confinement()


def become_user(*folders):
    """As root, a child goes on as another user; the process that made the folders removes them."""
    if os.geteuid() != 0:
        for folder in folders:
            atexit.register(shutil.rmtree, folder)
        return
    pid = os.fork()
    if pid != 0:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for folder in folders:
            shutil.rmtree(folder)
        os._exit(status if status >= 0 else 1)
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    os.chdir('/')


# A program that executes another one, which inherits a file, a folder and a terminal.
LEAVING = """
import os, sys
for number, name in enumerate((sys.argv[1], '/', '/dev/ptmx'), 7):
    fd = os.open(name, os.O_RDWR if number == 9 else os.O_RDONLY)
    os.dup2(fd, number)
    if fd != number:
        os.close(fd)
os.execv(sys.argv[2], sys.argv[2:])
"""


def leaving(path):
    """As an editor that forgets O_CLOEXEC starts the broker, with this file at 7."""
    return [sys.executable, '-c', LEAVING, str(path)]


# A program that executes another one, in which a system call then fails.
REFUSING = """
import ctypes, os, struct, sys
call, error = int(sys.argv[1]), int(sys.argv[2])
steps = b''.join(struct.pack('HBBI', *step) for step in (
    (0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x00050000 | error),
    (0x06, 0, 0, 0x7fff0000)))
program = ctypes.create_string_buffer(steps)
head = struct.pack('HxxxxxxP', 4, ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, head, 0, 0) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""


def refusing(call, error):
    return [sys.executable, '-c', REFUSING, str(call), str(error)]
