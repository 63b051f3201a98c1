# SPDX-License-Identifier: MIT
"""
Two hosts on this machine, as network namespaces: here (`near` and `far` are names of the other
host) and there. `near` is a veth pair. `far` is a link of LINK_BITS a second that delays each
packet; packets are as large as a TUN device takes, because this program forwards them.

    two_hosts.py PID PID BITS SECONDS     forwards between the namespaces of two processes
"""

import collections
import contextlib
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

from harness import BenchError

NEAR, FAR = "near.test", "far.test"
ADDRESSES = {NEAR: ("192.0.2.1", "192.0.2.2"), FAR: ("198.51.100.1", "198.51.100.2")}
LINK_BITS = 1_000_000_000
ROUND_TRIP_SECONDS = 0.02
MTU = 65500
TUN_DEVICE = "/dev/net/tun"
SET_TUN, TUN, NO_INFO = 0x400454CA, 0x0001, 0x1000
NEW_NETWORK = 0x40000000


def is_possible():
    return os.geteuid() == 0 and os.access(TUN_DEVICE, os.R_OK | os.W_OK)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(words)}: {done.stderr}")


class Namespaces:
    """A process that holds namespaces; it ends with its stdin."""

    def __init__(self, *kinds):
        self.process = subprocess.Popen(["unshare", *kinds, "cat"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.process.stdin.write(b"x")
        self.process.stdin.flush()
        if self.process.stdout.read(1) != b"x":
            raise BenchError("two_hosts: unshare has failed")
        self.pid = str(self.process.pid)

    def enter(self, *kinds):
        return ["nsenter", "-t", self.pid, *kinds, "--"]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class TwoHosts:
    """For `with`. `enter` has the words that go before a command so that it runs here."""

    def __init__(self, folder, is_quick):
        self.hosts = os.path.join(folder, "hosts")
        self.delay = ROUND_TRIP_SECONDS / (20 if is_quick else 2)
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.here = stack.enter_context(contextlib.closing(Namespaces("-n", "-m")))
            self.there = stack.enter_context(contextlib.closing(Namespaces("-n")))
            self.connect_near()
            link = subprocess.Popen(
                [sys.executable, "-B", os.path.abspath(__file__), self.here.pid, self.there.pid,
                 str(LINK_BITS), str(self.delay)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            stack.callback(link.wait)
            stack.callback(link.stdout.close)
            stack.callback(link.stdin.close)
            if link.stdout.readline() != b"ready\n":
                raise BenchError("two_hosts: the link has failed")
            for side, place in enumerate((self.here, self.there)):
                self.configure(place, "far", ADDRESSES[FAR][side])
            self.name()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def connect_near(self):
        run("ip", "link", "add", "near", "netns", self.here.pid, "type", "veth",
            "peer", "name", "near", "netns", self.there.pid)
        for side, place in enumerate((self.here, self.there)):
            run(*place.enter("-n"), "ip", "link", "set", "lo", "up")
            self.configure(place, "near", ADDRESSES[NEAR][side])

    def configure(self, place, device, address):
        run(*place.enter("-n"), "ip", "address", "add", f"{address}/24", "dev", device)
        run(*place.enter("-n"), "ip", "link", "set", device, "up")

    def name(self):
        with open(self.hosts, "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n")
            file.writelines(f"{there} {name}\n" for name, (_, there) in ADDRESSES.items())
        os.chmod(self.hosts, 0o644)
        run(*self.here.enter("-m"), "mount", "--bind", self.hosts, "/etc/hosts")

    def enter(self, folder):
        return [*self.here.enter("-n", "-m"), "env", f"--chdir={folder}"]


# ---- the link ----

def open_tun(pid):
    with open(f"/proc/{pid}/ns/net", encoding="ascii") as space:
        if ctypes.CDLL(None).setns(space.fileno(), NEW_NETWORK) != 0:
            sys.exit("two_hosts: setns")
    tun = os.open(TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, SET_TUN, struct.pack("16sH14x", b"far", TUN | NO_INFO))
    run("ip", "link", "set", "far", "mtu", str(MTU))
    return tun


class Direction:
    """Packets under way, each with the time at which it arrives."""

    def __init__(self, source, target, bits, delay):
        self.source, self.target = source, target
        self.bits, self.delay = bits, delay
        self.packets = collections.deque()
        self.free = 0.0  # until then the link is busy with the last one

    def take(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = os.read(self.source, MTU + 64)
                self.free = max(self.free, time.monotonic()) + len(packet) * 8 / self.bits
                self.packets.append((self.free + self.delay, packet))

    def give(self):
        """
        Delivers the packets that are due; returns the seconds until the next one arrives, or None.
        """
        while self.packets and self.packets[0][0] <= time.monotonic():
            with contextlib.suppress(OSError):  # the other end is not up yet
                os.write(self.target, self.packets.popleft()[1])
        return max(0.0, self.packets[0][0] - time.monotonic()) if self.packets else None


def forward(here, there, bits, delay):
    ways = (Direction(here, there, bits, delay), Direction(there, here, bits, delay))
    print("ready", flush=True)
    while True:
        waits = [wait for wait in (way.give() for way in ways) if wait is not None]
        ready = select.select([here, there, 0], [], [], min(waits, default=None))[0]
        if 0 in ready:
            return
        for way in ways:
            way.take()


if __name__ == "__main__":
    # A device stays in the namespace in which it was opened.
    FIRST, SECOND = open_tun(sys.argv[1]), open_tun(sys.argv[2])
    forward(FIRST, SECOND, float(sys.argv[3]), float(sys.argv[4]))
