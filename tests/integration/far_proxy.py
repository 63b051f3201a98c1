# SPDX-License-Identifier: MIT
"""
HTTP proxies on the far side of the small Internet (internet.py), which know hosts that the name
server does not know: every name below .outer is public.
"""

import base64
import ctypes
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import threading

import processes

from internet import PR_SET_PDEATHSIG, PUBLIC, THERE
from keys_server import Server as KeyServer
from keys_server import fields_of

PROXY_PORT, LOGIN_PORT, GARBAGE_PORT, NOBODY_PORT, TINY_PORT = 3128, 3129, 3130, 3131, 3132
PASSWORD = 's3cret@far'
TINY_LOGIN = 'tiny:s3cret'
KEYS_HOST = 'elsewhere.test'  # a server with TLS on the far side's loopback
LOGIN = 'Basic ' + base64.b64encode(f'me:{PASSWORD}'.encode()).decode()


def relay(take, give):
    """Copies bytes from one side to the other until the first one ends."""
    try:
        while data := take(65536):
            give.sendall(data)
        give.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Proxy(socketserver.StreamRequestHandler):
    def answer(self, status):
        self.wfile.write(f'HTTP/1.1 {status}\r\nVia: 1.1 far\r\n\r\n'.encode())

    def read_head(self):
        words = self.rfile.readline().decode('latin-1').split()
        fields = {}
        while line := self.rfile.readline().strip().decode('latin-1'):
            name, _, value = line.partition(':')
            fields[name.lower()] = value.strip()
        return words, fields

    def handle(self):
        words, fields = self.read_head()
        login = fields.get('proxy-authorization')
        asked = '' if login is None else ' with a login'
        asked += ' and a key' if 'x-api-key' in fields else ''
        self.server.log.write(f'proxy {" ".join(words[:2])}{asked}\n')
        host, _, port = words[1].rpartition(':')
        if self.server.login not in (None, login):
            self.answer('407 Proxy Authentication Required')
        elif host == 'refused.outer':
            self.answer('403 Forbidden')
        else:
            known = {KEYS_HOST: '127.0.0.1'}
            address = PUBLIC if host.endswith('.outer') else known.get(host, host.strip('[]'))
            self.connect(address, int(port))

    def connect(self, address, port):
        try:
            there = socket.create_connection((address, port), 20)
        except OSError:
            self.answer('502 Bad Gateway')
            return
        with there:
            self.answer('200 Connection established')
            up = threading.Thread(target=relay, args=(self.rfile.read1, there), daemon=True)
            up.start()
            relay(there.recv, self.connection)
            up.join(20)


class Garbage(socketserver.StreamRequestHandler):
    def handle(self):
        self.rfile.readline()
        self.wfile.write(b'220 far.example ESMTP\r\n')


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def start(log, port, handler, login=None):
    server = Server((THERE, port), handler)
    server.log, server.login = log, login
    threading.Thread(target=server.serve_forever, daemon=True).start()


class LoggedKeys(KeyServer):
    def __init__(self, log, certificates):
        self.log = log
        super().__init__(certificates, 'wrong')  # this certificate is for KEYS_HOST

    def answer(self, wrapped, head):
        fields = fields_of(head)
        self.log.write(f'key {fields.get("x-api-key")} {fields.get("proxy-authorization")}\n')
        super().answer(wrapped, head)


def answers(port):
    try:
        socket.create_connection((THERE, port), 5).close()
    except OSError:
        return False
    return True


def start_tinyproxy(folder):
    """It listens when this returns. The far side's own name server answers its questions."""
    program = shutil.which('tinyproxy', path=f'{os.environ.get("PATH", "")}:/usr/sbin:/usr/bin')
    if program is None:
        return
    config, log = folder / 'tinyproxy.conf', folder / 'tinyproxy.log'
    log.touch(mode=0o644)  # tests that become another user read it
    config.write_text(f'Port {TINY_PORT}\nListen {THERE}\nTimeout 60\nMaxClients 20\n'
                      f'LogFile "{log}"\nLogLevel Connect\n'
                      f'BasicAuth {TINY_LOGIN.replace(":", " ")}\n')
    tiny = subprocess.Popen(
        [program, '-d', '-c', str(config)], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    # If it never does, its own test fails; an error here would skip all of them.
    processes.wait_until(lambda: tiny.poll() is not None or answers(TINY_PORT), 20)


def start_all(folder, certificates):
    """For internet.enter. The file `keys-port` has the port of the server that needs a key."""
    def on_far_side(log):
        start(log, PROXY_PORT, Proxy)
        start(log, LOGIN_PORT, Proxy, LOGIN)
        start(log, GARBAGE_PORT, Garbage)
        start_tinyproxy(folder)
        (folder / 'keys-port').write_text(str(LoggedKeys(log, certificates).port))
    return on_far_side
