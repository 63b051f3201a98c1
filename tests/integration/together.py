# SPDX-License-Identifier: MIT
"""Runs tests beside each other that wait most of the time."""

import concurrent.futures
import threading
import time
import unittest


def tests_of(loader, classes):
    """The tests of several classes, in order."""
    return [test for one in classes for test in loader.loadTestsFromTestCase(one)]


class Together(unittest.TestSuite):
    """
    Runs its tests in several threads. Each test has a result of its own, which is added at the end.
    """

    def __init__(self, at_once, tests):
        super().__init__(tests)
        self.at_once = at_once

    def run(self, result, debug=False):
        lock = threading.Lock()

        def run_one(test):
            own = unittest.TestResult()
            begin = time.monotonic()
            test.run(own)
            with lock:
                result.testsRun += own.testsRun
                result.failures += own.failures
                result.errors += own.errors
                result.skipped += own.skipped
                state = 'ok' if own.wasSuccessful() else 'FAILED'
                result.stream.writeln(f'{test} ... {state} {time.monotonic() - begin:.1f} s')
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            list(pool.map(run_one, self))
        return result
