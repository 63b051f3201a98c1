#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The benchmark itself: it runs through, and a relay that loses, repeats, changes
or reorders anything is a failure and no measurement. Nothing here is timed.

    test_bench.py TOOLS BROKER
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import far
import two_hosts

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "."
BROKER = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
PYTHON = [sys.executable, "-B"]
WHOLE = os.environ.get("ACP_WHOLE") == "1"
HAS_NAMESPACES = subprocess.run(["unshare", "-Urn", "true"], capture_output=True,
                                check=False).returncode == 0


def tool(name):
    return os.path.join(TOOLS, name)


def measure(mode, lie):
    """Runs the load client over the lying relay, with six small messages."""
    return subprocess.run(
        [tool("load_client"), *mode, "--", *PYTHON, os.path.join(HERE, "lying_relay.py"), lie,
         tool("load_agent")],
        capture_output=True, text=True, timeout=60, check=False)


class LoadClient(unittest.TestCase):
    def test_an_honest_relay_is_measured(self):
        for mode in (["stream", "small", "6"], ["echo", "small", "6"], ["stream", "string", "6"],
                     ["stream", "members", "6"], ["echo", "medium", "6"],
                     ["crowd", "small", "6", "3"]):
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


def answers(lines, change):
    """
    The results that a good client would give to a prompt that measures, with one of them changed.
    """
    content = "".join(chr(97 + i % 26) if i % 64 != 63 else "\n" for i in range(256))
    results = {
        "fs/read_text_file": {"content": content},
        "fs/write_text_file": {},
        "terminal/create": {"terminalId": "t1"},
        "terminal/wait_for_exit": {"exitCode": 0, "signal": None},
        "terminal/output": {"output": "x" * 65536, "truncated": True},
        "terminal/release": {},
    }
    results.update(change)
    for line in lines:
        message = json.loads(line)
        if "method" not in message:
            return message
        path = message["params"].get("path")
        if message["method"] == "fs/write_text_file" and "content" not in change:
            with open(path, "w", encoding="utf-8") as file:
                file.write(message["params"]["content"])
        yield {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
    return None


class Tools(unittest.TestCase):
    """The agent that measures files and terminals, and a client that answers it."""

    def measure(self, what, change=None):
        """Returns the answer to the prompt, the exit status, and stderr."""
        with tempfile.TemporaryDirectory() as work:
            agent = subprocess.Popen([tool("load_agent")], cwd=work, text=True, bufsize=1,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
            prompt = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {
                "sessionId": "s", "prompt": [{"type": "text", "text": f"tools {what}"}]}}
            answer = self.serve(agent, prompt, change or {})
            _, said = agent.communicate(timeout=60)
            return answer, agent.returncode, said

    def serve(self, agent, prompt, change):
        message = prompt
        given = answers(agent.stdout, change)
        while True:
            agent.stdin.write(json.dumps(message, separators=(",", ":")) + "\n")
            try:
                message = next(given)
            except StopIteration as end:
                return end.value

    def test_a_good_client_is_measured(self):
        for what in ("read 256 3 both", "write 256 3 both", "run 0 3 both", "output 1000 1 both"):
            with self.subTest(what=what):
                answer, status, said = self.measure(what)
                self.assertEqual((status, said), (0, ""))
                measured = answer["result"]["_meta"]["bench"]
                self.assertEqual(sorted(measured), ["asked_us", "plain_us"])
                self.assertGreater(min(measured.values()), 0)

    def test_a_client_that_lies_is_found_out(self):
        for what, change, said in (
                ("read 256 3 both", {"fs/read_text_file": {"content": "other"}}, "differs"),
                ("write 256 3 both", {"content": "not written"}, "differs from what was written"),
                ("run 0 3 both", {"terminal/wait_for_exit": {"exitCode": 1}}, "differs"),
                ("output 9 1 both", {"terminal/output": {"output": "", "truncated": True}},
                 "bytes came")):
            with self.subTest(what=what):
                answer, status, text = self.measure(what, change)
                self.assertEqual((answer, status), (None, 1))
                self.assertIn(said, text)


class Running(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run(
            [*PYTHON, os.path.join(HERE, "run.py"), "--tools", TOOLS, *arguments],
            capture_output=True, text=True, timeout=500, check=False)


class Runner(Running):
    def test_every_part_runs_without_a_broker(self):
        with tempfile.TemporaryDirectory() as scratch:
            samples = os.path.join(scratch, "samples.json")
            done = self.run_it("--no-broker", "--quick", "--repeat", "1", "--json", samples)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(samples, encoding="utf-8") as file:
                taken = json.load(file)["samples"]
        self.assertEqual(sorted(taken), ["confine", "growth", "memory", "relay", "ssh",
                                         "ssh-sync", "start", "store", "sync", "toolhost"])
        self.assertEqual(len(taken["start"]["start"]["direct"]), 4)
        self.assertIn("| round trip 200 B, p50, 1 CPU |", done.stdout)
        self.assertNotIn("met", done.stdout)

    def test_the_rows_of_the_page_are_as_they_stand_there(self):
        done = self.run_it("--no-broker", "--quick", "--repeat", "1", "--docs", "start",
                           "toolhost")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| | bare relay | broker | broker to bare relay | target |\n"
                      "|---|--:|--:|--:|---|\n", done.stdout)
        self.assertIn("\n| | plain calls | broker | broker to plain calls | target |\n",
                      done.stdout)
        self.assertRegex(done.stdout,
                         r"\n\| `fs/read_text_file`, 1 KiB \| [0-9.,]+ µs \| \| \| ≤ 40 µs \|")
        self.assertNotIn("\N{NO-BREAK SPACE}", done.stdout)

    def test_files_and_terminals_of_the_broker_are_measured(self):
        done = self.run_it("--broker", BROKER, "--quick", "--repeat", "1", "toolhost")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\n\| `fs/read_text_file`, 1 KiB \| [^|]+ \| [^|]+ \| × ")
        self.assertRegex(done.stdout, r"\n\| 1 GiB of output[^|]+\| [^|]+ \| [^|]+ \| × ")

    def test_one_part_can_be_asked_for(self):
        done = self.run_it("--no-broker", "--quick", "--repeat", "1", "start")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("`initialize`", done.stdout)
        self.assertNotIn("round trip", done.stdout)

    def test_an_unknown_part_and_a_missing_broker_are_said(self):
        done = self.run_it("stars")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected relay, start, memory, growth, toolhost, sync, store", done.stderr)
        done = self.run_it("--broker", "/nonexistent/acp-broker")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/acp-broker is not there", done.stderr)


class SlowParts(Running):
    """The parts that take minutes."""

    def test_growth_is_measured(self):
        done = self.run_it("--broker", BROKER, "--quick", "--repeat", "1", "growth")
        self.assertEqual(done.returncode, 0, done.stderr)
        measured = r"[^|]*\| [^|]+ \| [^|]+ \| × "
        for what in ("10 sessions of one broker", "100 sessions of one broker",
                     "one of 100 brokers", "the last of 100 brokers"):
            self.assertRegex(done.stdout, r"\n\| [^|]*" + what + measured)
        self.assertRegex(done.stdout, r"\n\| private memory after 40,000 messages")

    def test_syncing_is_measured(self):
        done = self.run_it("--broker", BROKER, "--quick", "--repeat", "1", "sync")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\n\| 50,000 files[^|]+\| [^|]+ \| [^|]+ \| × ")
        self.assertRegex(done.stdout, r"\n\| private memory of the broker[^|]+\| \| [^|]+ \| ")

    def test_the_growth_of_a_store_is_measured(self):
        done = self.run_it("--broker", BROKER, "--quick", "--repeat", "1", "store")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\n\| the store grows a turn[^|]+\| [^|]+ \| [^|]+ \| × 0")
        self.assertRegex(done.stdout, r"\n\| of that for the binary \| \|[^|]+\|[^|]+\|.* met \|")

    @unittest.skipUnless(far.is_possible(), "there is no sshd")
    def test_an_agent_on_another_host_is_measured(self):
        done = self.run_it("--broker", BROKER, "--quick", "--repeat", "1", "ssh",
                           "ssh-sync")
        self.assertEqual(done.returncode, 0, done.stderr)
        measured = r"[^|]*\| [^|]+ \| [^|]+ \| × "
        for what in ("round trip 200 B, p50; libssh2", "round trip 200 B, p50; openssh",
                     "throughput 1 MiB, one string, 50 ms away", "launch to the answer",
                     "`terminal/create`", "first sync of 50,000 files, by git; `git push`",
                     "10 of them changed there, 50 ms away, by rsync"):
            self.assertRegex(done.stdout, r"\n\| " + what + measured)
        self.assertRegex(done.stdout,
                         r"\n\| round trips that an unchanged sync waits for, by git \| \| ")

    @unittest.skipUnless(HAS_NAMESPACES, "nobody may make namespaces here")
    def test_confinement_is_measured(self):
        done = self.run_it("--broker", BROKER, "--quick", "--repeat", "1", "--docs", "confine")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\n| | direct | bubblewrap | sandbox-runtime | `--confine` | "
                      "`--confine` to direct | target |\n", done.stdout)
        rows = ["start to the answer of `initialize`, beyond the agent's own; network = blocked",
                "start to the answer of `initialize`, beyond the agent's own; network = allow",
                "round trip 200 B, p50; direct: the broker without a cell"]
        if two_hosts.is_possible():
            rows += ["a connection by name, to the first byte of the server",
                     "download, 1 Gbit/s, 20 ms away"]
        for row in rows:
            self.assertRegex(done.stdout, r"\n\| " + row + r" \| [^|]+ \|[^|]*\|[^|]*\| [^|]+ \| ")


if not WHOLE:
    del SlowParts


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
