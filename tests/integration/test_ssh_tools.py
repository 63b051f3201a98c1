#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The server and the proxy that the tests over SSH use, with ssh(1) and plain sockets."""

import os
import socket
import subprocess
import time
import unittest

import processes
from processes import PATIENCE
from case import main
from slow_proxy import SlowProxy
from sshd import Sshd


def ssh(config, *words, alias='box'):
    return subprocess.run(['ssh', '-F', str(config), '-o', 'BatchMode=yes', alias, *words],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                          text=True)


class Server(unittest.TestCase):
    def test_commands_run_in_the_home_of_the_test_by_its_shell(self):
        with Sshd(shell='/bin/dash') as sshd:
            result = ssh(sshd.config, 'echo $HOME $SHELL')
            self.assertEqual(result.stdout, f'{sshd.home} /bin/dash\n', result.stderr)
            folder = sshd.folder
        self.assertFalse(folder.exists())

    def test_a_connection_is_counted_and_killed(self):
        with Sshd() as sshd:
            running = subprocess.Popen(['ssh', '-F', str(sshd.config), 'box', 'echo; sleep 60'],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            with running.stdout as out:
                self.assertEqual(out.readline(), b'\n')
            self.assertEqual(len(sshd.connections()), 1)
            sshd.kill_connections()
            self.assertEqual(running.wait(PATIENCE), 255)
            self.assertEqual(ssh(sshd.config, 'echo again').stdout, 'again\n')

    def test_it_is_reached_by_another_name_through_the_proxy(self):
        with Sshd() as sshd, SlowProxy(sshd.port, delay=0.02) as proxy:
            config = sshd.folder / 'other'
            config.write_text(sshd.alias('far', 'Compression no', port=proxy.port))
            begin = time.monotonic()
            result = ssh(config, 'echo far', alias='far')
            self.assertEqual(result.stdout, 'far\n', result.stderr)
            self.assertGreater(time.monotonic() - begin, 0.16)  # four round trips and more
            self.assertGreater(min(proxy.sent.values()), 1000)


class Proxy(unittest.TestCase):
    def setUp(self):
        self.server = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(self.server.close)

    def pair(self, proxy):
        near = socket.create_connection(('127.0.0.1', proxy.port), PATIENCE)
        far, _ = self.server.accept()
        for one in (near, far):
            one.settimeout(PATIENCE)
            self.addCleanup(one.close)
        return near, far

    def proxy(self, **options):
        return SlowProxy(self.server.getsockname()[1], **options)

    def test_bytes_are_delayed_each_way_and_counted(self):
        with self.proxy(delay=0.1) as proxy:
            near, far = self.pair(proxy)
            begin = time.monotonic()
            near.sendall(b'ping')
            self.assertEqual(far.recv(10), b'ping')
            far.sendall(b'pong!')
            self.assertEqual(near.recv(10), b'pong!')
            self.assertGreaterEqual(time.monotonic() - begin, 0.2)
            processes.wait_until(lambda: proxy.total() == 9, PATIENCE)  # it counts after sending
            self.assertEqual(proxy.sent, {'up': 4, 'down': 5})

    def test_delay_is_no_limit_of_throughput_and_loses_nothing(self):
        data = os.urandom(4 * 1024 * 1024)
        with self.proxy(delay=0.05) as proxy:
            near, far = self.pair(proxy)
            sender = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=near.fileno())
            got = bytearray()
            with sender.stdin as pipe:
                for start in range(0, len(data), 65536):
                    pipe.write(data[start:start + 65536])
                    if start >= 1024 * 1024:
                        got += far.recv(65536)
            sender.wait(PATIENCE)
            near.shutdown(socket.SHUT_WR)
            while piece := far.recv(65536):
                got += piece
            self.assertEqual(bytes(got), data)

    def test_a_half_close_goes_through(self):
        with self.proxy() as proxy:
            near, far = self.pair(proxy)
            near.shutdown(socket.SHUT_WR)
            self.assertEqual(far.recv(1), b'')
            far.sendall(b'still')
            self.assertEqual(near.recv(10), b'still')

    def test_it_stalls_and_goes_on(self):
        with self.proxy() as proxy:
            near, far = self.pair(proxy)
            proxy.stall()
            near.sendall(b'x')
            far.settimeout(0.2)
            with self.assertRaises(TimeoutError):
                far.recv(1)
            far.settimeout(PATIENCE)
            proxy.stall(False)
            self.assertEqual(far.recv(1), b'x')

    def test_it_cuts_at_once_and_after_so_many_bytes(self):
        with self.proxy() as proxy:
            near, _ = self.pair(proxy)
            proxy.cut()
            with self.assertRaises(ConnectionResetError):
                near.recv(1)
            near, far = self.pair(proxy)
            proxy.cut_after = 3
            near.sendall(b'12345')
            got = b''
            with self.assertRaises(ConnectionResetError):
                while True:
                    piece = far.recv(10)
                    if not piece:
                        raise ConnectionResetError
                    got += piece
            self.assertLessEqual(len(got), 3)
            self.assertTrue(processes.wait_until(lambda: not proxy.pairs, PATIENCE))
            self.assertEqual(proxy.total(), 3)


if __name__ == '__main__':
    main()
