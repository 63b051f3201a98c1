# SPDX-License-Identifier: MIT
"""For tests of the confinement of agents; as root they become another user."""

import atexit
import ctypes
import os
import shutil

USER = 12345
LANDLOCK_CREATE_RULESET = 444  # the same on all processors


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
