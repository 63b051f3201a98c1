# SPDX-License-Identifier: MIT
"""
A small Internet in namespaces of its own: this process is on a machine that reaches servers by a
cable and asks a name server there. It needs no root, and nothing leaves this machine.

    this machine: 10.77.0.1, fd77::1 ── 10.77.0.2, fd77::2: a name server, and every other address
"""

import base64
import ctypes
import hashlib
import http.server
import io
import json
import os
import pathlib
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import tarfile
import threading

HERE, THERE = '10.77.0.1', '10.77.0.2'
HERE_TOO = '10.77.0.5'  # a second address of this machine on the cable
HERE6, THERE6 = 'fd77::1', 'fd77::2'
PUBLIC = '93.184.0.1'
PRIVATE = '10.99.0.1'
METADATA = '169.254.169.254'
STREAM_PORT, OTHER_PORT, DATAGRAM_PORT, WEB_PORT = 8000, 8001, 9000, 8002

# The answers of the name server; every other name below .example is public.
NAMES = {'private.example': PRIVATE, 'metadata.example': METADATA, 'here.example': HERE,
         'proxy.example': THERE, 'alias.example': THERE,
         'here-too.example': HERE_TOO,
         'loopback.example': '127.0.0.1', 'none.example': None}

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags):
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), 'unshare')


def name_user(inside, outside_user, outside_group):
    pathlib.Path('/proc/self/setgroups').write_text('deny')
    pathlib.Path('/proc/self/uid_map').write_text(f'{inside[0]} {outside_user} 1')
    pathlib.Path('/proc/self/gid_map').write_text(f'{inside[1]} {outside_group} 1')


def run(*words):
    path = f'{os.environ.get("PATH", "")}:/usr/sbin:/sbin'
    subprocess.run([shutil.which(words[0], path=path), *words[1:]], check=True)


# ---- the far side ----

def read_question(message):
    """The name and the type of a DNS question."""
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode('latin-1'))
        at += 1 + message[at]
    return '.'.join(labels).lower(), struct.unpack('>H', message[at + 1:at + 3])[0], at + 5


def answer_question(message):
    name, kind, end = read_question(message)
    address = NAMES.get(name, PUBLIC if name.endswith('.example') else None)
    has_address = address is not None and kind == 1
    answer = b'\xc0\x0c' + struct.pack('>HHIH', 1, 1, 0, 4) + socket.inet_aton(address) \
        if has_address else b''
    head = message[:2] + struct.pack('>HHHHH', 0x8180, 1, int(has_address), 0, 0)
    return name, kind, head + message[12:end] + answer


def small_package():
    """Makes what `npm pack` makes: a package of one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w:gz') as archive:
        content = b'{"name": "small", "version": "1.0.0"}'
        member = tarfile.TarInfo('package/package.json')
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


PACKAGE = small_package()
PACKAGE_HASH = 'sha512-' + base64.b64encode(hashlib.sha512(PACKAGE).digest()).decode()


class Web(http.server.BaseHTTPRequestHandler):
    """An npm registry with the package `small`; any other request is answered with itself."""

    protocol_version = 'HTTP/1.1'

    def log_message(self, *_args):
        pass

    def do_GET(self):
        head = f'{self.requestline}\r\n{self.headers}'
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.server.log.write(f'web {self.requestline}\n')
        if self.path == '/small':
            url = f'http://{self.headers["Host"]}/small/-/small-1.0.0.tgz'
            answer = json.dumps({
                'name': 'small', 'dist-tags': {'latest': '1.0.0'}, 'versions': {'1.0.0': {
                    'name': 'small', 'version': '1.0.0',
                    'dist': {'tarball': url, 'integrity': PACKAGE_HASH}}}}).encode()
        elif self.path.endswith('.tgz'):
            answer = PACKAGE
        else:
            answer = head.encode() + body
        self.send_response(200)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET


class WebServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6  # takes IPv4 as well


def serve_web(log):
    server = WebServer(('::', WEB_PORT), Web)
    server.log = log
    threading.Thread(target=server.serve_forever, daemon=True).start()


def serve(log, ready):
    """Runs every server of the far side, for ever."""
    selector = selectors.DefaultSelector()
    for port in (STREAM_PORT, OTHER_PORT):
        listener = socket.create_server(('::', port), family=socket.AF_INET6, backlog=64,
                                        dualstack_ipv6=True)
        selector.register(listener, selectors.EVENT_READ, 'stream')
    for port, role in ((53, 'names'), (DATAGRAM_PORT, 'datagrams')):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((PUBLIC if role == 'datagrams' else THERE, port))
        selector.register(server, selectors.EVENT_READ, role)
    serve_web(log)
    os.write(ready, b'x')
    while True:
        for key, _ in selector.select():
            if key.data == 'stream':
                client, _ = key.fileobj.accept()
                address, port = client.getsockname()[:2]
                log.write(f'stream {address.removeprefix("::ffff:")} {port}\n')
                client.sendall(f'HELLO {address.removeprefix("::ffff:")}\n'.encode())
                client.close()
            elif key.data == 'names':
                message, sender = key.fileobj.recvfrom(2048)
                name, kind, answer = answer_question(message)
                log.write(f'name {name} {kind}\n')
                key.fileobj.sendto(answer, sender)
            else:
                message, sender = key.fileobj.recvfrom(2048)
                log.write(f'datagram {len(message)}\n')
                key.fileobj.sendto(b'HELLO', sender)


def be_far_side(log_path, made, go, also):
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    unshare(CLONE_NEWNET)
    os.write(made, b'x')
    os.read(go, 1)
    run('ip', 'link', 'set', 'lo', 'up')
    run('ip', 'addr', 'add', f'{THERE}/24', 'dev', 'far')
    run('ip', 'link', 'set', 'far', 'up')
    run('ip', '-6', 'addr', 'add', f'{THERE6}/64', 'dev', 'far', 'nodad')
    for address in (PUBLIC, PRIVATE, METADATA):
        run('ip', 'addr', 'add', f'{address}/32', 'dev', 'lo')
    with open(log_path, 'w', buffering=1) as log:
        also(log)
        serve(log, made)


# ---- this side ----

def make_machine(far_pid, go, folder):
    run('mount', '--make-rprivate', '/')
    files = {'resolv.conf': f'nameserver {THERE}\n', 'nsswitch.conf': 'hosts: files dns\n',
             'hosts': '127.0.0.1 localhost\n'}
    for name, content in files.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o644)
        run('mount', '--bind', str(folder / name), os.path.realpath(f'/etc/{name}'))
    run('ip', 'link', 'set', 'lo', 'up')
    run('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far', 'netns', str(far_pid))
    for address in (HERE, HERE_TOO):
        run('ip', 'addr', 'add', f'{address}/24', 'dev', 'near')
    run('ip', 'link', 'set', 'near', 'up')
    run('ip', '-6', 'addr', 'add', f'{HERE6}/64', 'dev', 'near', 'nodad')
    run('ip', 'route', 'add', 'default', 'via', THERE)
    os.write(go, b'x')


def enter(folder, also=lambda _log: None):
    """
    Moves this process, which has one thread, into namespaces of its own for good. `folder` stays
    visible. Raises OSError if this machine forbids it. The far side calls `also` before it serves.
    """
    user, group = os.geteuid(), os.getegid()
    if user != 0:
        unshare(CLONE_NEWUSER)
        name_user((0, 0), user, group)
    unshare(CLONE_NEWNET | CLONE_NEWNS)
    log = folder / 'log'
    made, go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(made[0])
        try:
            be_far_side(log, made[1], go[0], also)
        finally:
            os._exit(1)
    os.close(made[1])
    os.read(made[0], 1)
    make_machine(pid, go[1], folder)
    if os.read(made[0], 1) != b'x':
        raise OSError('the far side has ended')
    if user != 0:  # no process of root can be confined
        unshare(CLONE_NEWUSER)
        name_user((user, group), 0, 0)
    return log
