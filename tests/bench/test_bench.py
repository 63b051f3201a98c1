#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The benchmark itself: it runs through, and a relay that loses, repeats, changes
or reorders anything is a failure and no measurement. Nothing here is timed.

    test_bench.py TOOLS
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "."
PYTHON = [sys.executable, "-B"]


def tool(name):
    return os.path.join(TOOLS, name)


def measure(mode, lie):
    """The load client over the lying relay, six small messages."""
    return subprocess.run(
        [tool("load_client"), *mode, "--", *PYTHON, os.path.join(HERE, "lying_relay.py"), lie,
         tool("load_agent")],
        capture_output=True, text=True, timeout=60, check=False)


class LoadClient(unittest.TestCase):
    def test_an_honest_relay_is_measured(self):
        for mode in (["stream", "small", "6"], ["echo", "small", "6"], ["stream", "string", "6"],
                     ["stream", "members", "6"], ["echo", "medium", "6"]):
            done = measure(mode, "nothing")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["messages"], 6)

    def test_a_relay_that_lies_is_found_out(self):
        for lie in ("lose", "repeat", "change", "swap", "add", "end"):
            with self.subTest(lie=lie):
                done = measure(["stream", "small", "6"], lie)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertEqual(done.stdout, "")
                self.assertRegex(done.stderr, "message [0-9]+")

    def test_an_echo_that_was_changed_is_found_out(self):
        done = measure(["echo", "medium", "6"], "change")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("differs", done.stderr)

    def test_a_command_that_is_not_there_is_said(self):
        done = subprocess.run([tool("load_client"), "start", "--", "/nonexistent/agent"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/agent", done.stderr)


class Runner(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run(
            [*PYTHON, os.path.join(HERE, "run.py"), "--tools", TOOLS, *arguments],
            capture_output=True, text=True, timeout=240, check=False)

    def test_every_part_runs_without_a_broker(self):
        with tempfile.TemporaryDirectory() as scratch:
            samples = os.path.join(scratch, "samples.json")
            done = self.run_it("--no-broker", "--quick", "--repeat", "1", "--json", samples)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(samples, encoding="utf-8") as file:
                taken = json.load(file)["samples"]
        self.assertEqual(sorted(taken), ["memory", "relay", "start"])
        self.assertEqual(len(taken["start"]["start"]["direct"]), 4)
        self.assertIn("| round trip 200 B, p50, 1 CPU |", done.stdout)
        self.assertNotIn("met", done.stdout)

    def test_one_part_can_be_asked_for(self):
        done = self.run_it("--no-broker", "--quick", "--repeat", "1", "start")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("`initialize`", done.stdout)
        self.assertNotIn("round trip", done.stdout)

    def test_an_unknown_part_and_a_missing_broker_are_said(self):
        done = self.run_it("stars")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected relay, start, memory", done.stderr)
        done = self.run_it("--broker", "/nonexistent/acp-broker")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/acp-broker is not there", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
