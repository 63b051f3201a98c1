#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The same limits for an agent in a cell, with a broker that runs as root."""

import atexit
import os
import shutil
import unittest

import case
import test_limits_confined


@unittest.skipUnless(os.geteuid() == 0, 'only root can become another user')
class LimitsRoot(test_limits_confined.LimitsConfined):
    def open(self, **keys):
        client, session = super().open(**keys)
        before = len(client.texts(session))
        client.prompt(session, 'terminal id -u')
        self.assertNotIn('"0\\n', '\n'.join(client.texts(session)[before:]))
        return client, session


if __name__ == '__main__':
    atexit.register(shutil.rmtree, test_limits_confined.PROGRAMS)
    case.main()
