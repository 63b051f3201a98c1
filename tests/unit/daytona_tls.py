#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Servers with certificates of an authority nobody knows, and proxies, all on loopback, for C tests.

daytona_tls.py FOLDER makes ca.pem there, prints the ports - a server, one whose certificate is of
another name, a proxy, a proxy that refuses, a plain server - and ends with its stdin. What the
servers and the proxies were asked is in requests.log and proxy.log there.
"""

import pathlib
import socket
import socketserver
import ssl
import subprocess
import sys
import threading

FOLDER = pathlib.Path(sys.argv[1])
BODY = b'{"id":"e1","name":"p1","state":"started","token":"T0ken","sshCommand":"ssh T0ken@h"}'
HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n'
PATIENCE_SECONDS = 60
LOG_LOCK = threading.Lock()

NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']


def openssl(*words):
    subprocess.run(['openssl', *words], cwd=FOLDER, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates():
    openssl('req', '-x509', *NEW_KEY, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=Nobody',
            '-addext', 'basicConstraints=critical,CA:TRUE')
    for name, names in (('right', 'IP:127.0.0.1,DNS:localhost'), ('wrong', 'DNS:elsewhere.test')):
        openssl('req', '-x509', '-CA', 'ca.pem', '-CAkey', 'ca.key', *NEW_KEY, '-keyout',
                f'{name}.key', '-out', f'{name}.pem', '-subj', f'/CN={name}', '-addext',
                f'subjectAltName={names}', '-addext', 'basicConstraints=critical,CA:FALSE')


def log(name, text):
    with LOG_LOCK, (FOLDER / name).open('ab') as file:
        file.write(text)


def read_head(connection):
    head = b''
    while b'\r\n\r\n' not in head:
        piece = connection.recv(4096)
        if not piece:
            return b''
        head += piece
    return head


def serve(connection):
    """Answers requests without a body."""
    while head := read_head(connection):
        log('requests.log', head)
        connection.sendall(HEAD % len(BODY) + BODY)


def serve_tls(name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FOLDER / f'{name}.pem', FOLDER / f'{name}.key')

    def handle(connection):
        with context.wrap_socket(connection, server_side=True) as inside:
            serve(inside)
    return handle


def copy(source, target):
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def pass_on(connection):
    head = read_head(connection)
    log('proxy.log', head)
    host, _, port = head.split()[1].decode().rpartition(':')
    with socket.create_connection((host, int(port)), PATIENCE_SECONDS) as server:
        connection.sendall(b'HTTP/1.1 200 Connection established\r\nX-A: b\r\n\r\n')
        back = threading.Thread(target=copy, args=(server, connection), daemon=True)
        back.start()
        copy(connection, server)
        back.join(PATIENCE_SECONDS)


def refuse(connection):
    """Answers 502 if the client names a user for the proxy, otherwise 403."""
    head = read_head(connection)
    log('proxy.log', head)
    status = b'502' if b'Proxy-Authorization' in head else b'403'
    connection.sendall(b'HTTP/1.1 ' + status + b' No\r\nContent-Length: 0\r\n\r\n')


def listen(handle):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.settimeout(PATIENCE_SECONDS)
            try:
                handle(self.request)
            except OSError:
                pass  # the client has gone, or does not trust us

    server = socketserver.ThreadingTCPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


make_certificates()
print(*[listen(handle) for handle in (serve_tls('right'), serve_tls('wrong'), pass_on, refuse,
                                      serve)], flush=True)
sys.stdin.read()
