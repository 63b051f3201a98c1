#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The same limits for an agent in a cell. As root the whole test becomes another user, because no
process of root can be confined.
"""

import os
import pathlib
import shutil
import tempfile

import case
import test_limits

from confinement import CONFINE, become_user

# The programs are where every user may execute them, and where no cell hides them.
PROGRAMS = pathlib.Path(tempfile.mkdtemp(prefix='acp-programs-', dir='/opt' if
                                         os.access('/opt', os.W_OK) else None))
PROGRAMS.chmod(0o755)
BROKER = shutil.copy(case.BROKER, PROGRAMS)
AGENT = shutil.copy(case.AGENT, PROGRAMS)


class LimitsConfined(test_limits.Limits):
    def config(self, **keys):
        return super().config(
            **{'confine': CONFINE, 'network': 'blocked',  # takes no Landlock
               'allow_read': str(PROGRAMS), **keys})

    def broker_argv(self, *options, agent):
        return [BROKER, *options, '--', *agent]

    def agent_argv(self, *flags):
        return [*self.wrapper, AGENT, *flags]

    def open(self, **keys):
        client, session = super().open(**keys)
        self.assertTrue(self.greeting['_meta']['broker']['capabilities']['confined'])
        return client, session


if __name__ == '__main__':
    become_user(PROGRAMS)
    case.main()
