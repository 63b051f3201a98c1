# SPDX-License-Identifier: MIT
"""Of tests of what confines an agent; as root they become another user."""

import atexit
import ctypes
import os
import shutil

USER = 12345
LANDLOCK_CREATE_RULESET = 444  # the same on all processors


def confinement():
    """`required`, unless the kernel lacks the scopes of Landlock's that it takes."""
    version = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
    return 'required' if version >= 6 else 'yes'


CONFINE = confinement()


def become_user(*folders):
    """As root a child goes on as another user. Who made the folders removes them at the end."""
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
