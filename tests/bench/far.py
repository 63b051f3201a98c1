# SPDX-License-Identifier: MIT
"""
Another host for measurements: a real sshd on loopback, near, and behind a delaying proxy, far.
"""

import contextlib
import os
import subprocess
import sys

from harness import BenchError
from parts import trees

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                             "integration"))
import sshd  # noqa: E402
from slow_proxy import SlowProxy  # noqa: E402

ROUND_TRIP_SECONDS = 0.05
QUICK_ROUND_TRIP_SECONDS = 0.004
LINES = {"start-timeout": "600s", "persistence": "transient"}


def is_possible():
    return sshd.can_be_started()


class Place:
    """The host under one of its names, with an open connection of ssh's own for comparison."""

    def __init__(self, host, name, what, proxy):
        self.host = host
        self.name = name
        self.what = what  # the table shows it
        self.proxy = proxy
        self.ssh = ["ssh", "-F", host.config, "-o", "BatchMode=yes"]
        self.control = os.path.join(str(host.server.folder), name + ".control")
        self.cold = [*self.ssh, name]
        self.warm = [*self.ssh, "-o", f"ControlPath={self.control}", name]
        self.master = None

    def start_master(self):
        """Opens a connection of ssh's own, which `warm` then uses."""
        words = [*self.warm[:-1], "-o", "ControlMaster=yes", self.name, "cat"]
        self.master = subprocess.Popen(words, env=self.host.bench.env, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.master.stdin.write(b"x\n")
        self.master.stdin.flush()
        if self.master.stdout.readline() != b"x\n":
            raise BenchError(f"{' '.join(words)}: nothing came back")

    def stop_master(self):
        self.master.stdin.close()
        self.master.stdout.close()
        self.master.wait()

    def broker(self, client="libssh2", **keys):
        """The words that go before the agent's command so that it runs there."""
        bench = self.host.bench
        values = {"backend": "ssh", "host": self.name, "ssh-config": self.host.config,
                  "ssh-client": client, **LINES, **keys}
        name = "-".join([self.name, client, *keys.values()])
        path = os.path.join(bench.scratch, f"config-{name}")
        with open(path, "w", encoding="utf-8") as file:
            file.write('[profile "there"]\n')
            file.writelines(f"\t{key} = {value}\n" for key, value in values.items())
        return [bench.broker, "--config", path, "--profile", "there", "--"]


class Host:
    """
    For `with`. `near` is reached without a delay; a round trip to `far` takes ROUND_TRIP_SECONDS
    more.
    """

    def __init__(self, bench):
        self.bench = bench
        self.round_trip = QUICK_ROUND_TRIP_SECONDS if bench.quick else ROUND_TRIP_SECONDS
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.server = stack.enter_context(sshd.Sshd())
            proxy = stack.enter_context(SlowProxy(self.server.port, self.round_trip / 2))
            self.home = str(self.server.home)
            self.config = os.path.join(str(self.server.folder), "bench_config")
            with open(self.config, "w", encoding="utf-8") as file:
                file.write(self.server.alias("near") + self.server.alias("far", port=proxy.port))
            self.near = Place(self, "near", "", None)
            self.far = Place(self, "far", f", {ROUND_TRIP_SECONDS * 1000:.0f} ms away", proxy)
            for place in self.places():
                place.start_master()
                stack.callback(place.stop_master)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def places(self):
        return [self.near, self.far]

    def run(self, *words):
        return trees.run(self.bench, *words)
