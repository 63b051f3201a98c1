#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files that somebody writes to all the time, with a sync by rsync."""

import unittest

import case
import test_busy

from sync_case import TurnCase


@unittest.skipIf(case.SANITIZED, 'the sanitizer has to be loaded first')
class ByRsync(test_busy.There, TurnCase):
    transport = 'rsync'


class DatabasesByRsync(test_busy.Databases, TurnCase):
    transport = 'rsync'


if __name__ == '__main__':
    case.main()
