# SPDX-License-Identifier: MIT
"""
An API that needs a key, over TLS on loopback. An authority of the test's own has signed its
certificate.
"""

import contextlib
import os
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading

NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
PATIENCE_SECONDS = 60

# A program of the cell that makes one request with the key, and prints the status.
ASK = """
import os, urllib.request
asked = urllib.request.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/x',
                               headers={'x-api-key': os.environ['ANTHROPIC_API_KEY']})
print('status', urllib.request.urlopen(asked, timeout=60).status)
"""


def openssl(folder, *words):
    subprocess.run(['openssl', *words], cwd=folder, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates():
    """
    Makes a folder that everybody can read: ca.pem; right.pem for localhost, wrong.pem for another
    name.
    """
    folder = tempfile.mkdtemp(prefix='acp-keys-')
    openssl(folder, 'req', '-x509', *NEW_KEY, '-keyout', 'ca.key', '-out', 'ca.pem',
            '-subj', '/CN=Nobody', '-addext', 'basicConstraints=critical,CA:TRUE')
    for name, host in (('right', 'localhost'), ('wrong', 'elsewhere.test')):
        openssl(folder, 'req', '-x509', '-CA', 'ca.pem', '-CAkey', 'ca.key', *NEW_KEY,
                '-keyout', f'{name}.key', '-out', f'{name}.pem', '-subj', f'/CN={name}',
                '-addext', f'subjectAltName=DNS:{host}',
                '-addext', 'basicConstraints=critical,CA:FALSE')
    os.chmod(folder, 0o755)
    for path in pathlib.Path(folder).iterdir():
        path.chmod(0o644)
    return folder


def serving(folder, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = pathlib.Path(folder)
    context.load_cert_chain(folder / f'{name}.pem', folder / f'{name}.key')
    return context


class Front:
    """Puts TLS in front of a server of this machine that has none."""

    def __init__(self, folder, port):
        self.behind, self.context = port, serving(folder, 'right')
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.pass_on, args=(client,), daemon=True).start()

    def pass_on(self, client):
        with contextlib.suppress(OSError, ValueError), client, \
                self.context.wrap_socket(client, server_side=True) as near, \
                socket.create_connection(('127.0.0.1', self.behind)) as far:
            back = threading.Thread(target=pump, args=(far, near), daemon=True)
            back.start()
            pump(near, far)
            back.join()


def pump(here, there):
    with contextlib.suppress(OSError, ValueError):
        while piece := here.recv(65536):
            there.sendall(piece)
        there.shutdown(socket.SHUT_WR)


class Server:
    """
    The requests that it got are in `heads` and `bodies`. The path chooses the answer: /redirect,
    /echo (the head that it got), /split (the same, in two pieces), /events, /flood; it answers any
    other path with OK.
    """

    def __init__(self, folder, name='right'):
        self.heads, self.bodies = [], []
        self.elsewhere = None        # where /redirect leads
        self.released = threading.Event()
        self.flooded = 0             # bytes of /flood that were sent
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.accepting = threading.Thread(
            target=self.accept, args=(serving(folder, name),), daemon=True)
        self.accepting.start()

    def close(self):
        self.released.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.accepting.join()
        self.listener.close()

    def accept(self, context):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                client.settimeout(PATIENCE_SECONDS)
                threading.Thread(target=self.serve, args=(client, context), daemon=True).start()

    def serve(self, client, context):
        with contextlib.suppress(OSError, ValueError), client, \
                context.wrap_socket(client, server_side=True) as wrapped:
            stream = wrapped.makefile('rb')
            while head := self.read_head(stream):
                self.heads.append(head)
                self.bodies.append(self.read_body(stream, head))
                self.answer(wrapped, head)

    @staticmethod
    def read_head(stream):
        lines = []
        while line := stream.readline():
            lines.append(line)
            if line == b'\r\n':
                return b''.join(lines).decode('latin-1')
        return ''

    @staticmethod
    def read_body(stream, head):
        fields = fields_of(head)
        if fields.get('transfer-encoding') == 'chunked':
            body = b''
            while size := int(stream.readline(), 16):
                body += stream.read(size)
                stream.readline()
            stream.readline()
            return body
        return stream.read(int(fields.get('content-length', 0)))

    def answer(self, client, head):
        path = head.split()[1].split('?')[0]
        name = path.rsplit('/', 1)[1]
        getattr(self, f'answer_{name}', self.answer_ok)(client, head)

    def send(self, client, status, text, *fields):
        data = text.encode()
        client.sendall('\r\n'.join([f'HTTP/1.1 {status}', f'Content-Length: {len(data)}', *fields,
                                    '', '']).encode() + data)

    def answer_ok(self, client, head):
        self.send(client, '200 OK', 'OK', 'Alt-Svc: h3=":443"', 'X-Mine: yes')

    def answer_redirect(self, client, head):
        self.send(client, '307 Moved', 'moved', f'Location: {self.elsewhere}')

    def answer_echo(self, client, head):
        self.send(client, '400 Bad', head)

    def answer_split(self, client, head):
        data = head.encode()
        half = data.index(b'sk-') + 5
        client.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' +
                       b'%x\r\n%b\r\n' % (half, data[:half]))
        self.released.wait(PATIENCE_SECONDS)
        client.sendall(b'%x\r\n%b\r\n0\r\n\r\n' % (len(data) - half, data[half:]))

    def answer_release(self, client, head):
        self.released.set()
        self.send(client, '200 OK', str(self.flooded))

    def answer_events(self, client, head):
        client.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n'
                       b'Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n')
        self.released.wait(PATIENCE_SECONDS)
        client.sendall(b'9\r\ndata: 2\n\n\r\n0\r\n\r\n')

    def answer_flood(self, client, head):
        size = int(head.split()[1].split('?')[1])
        client.sendall(f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode())
        piece = b'x' * 65536
        for _ in range(size // len(piece)):
            client.sendall(piece)
            self.flooded += len(piece)


def fields_of(head):
    """
    The fields of a head, by their names in lower case. A name that occurs twice has both values.
    """
    fields = {}
    for line in head.split('\r\n')[1:]:
        name, colon, value = line.partition(':')
        if colon:
            old = fields.get(name.lower())
            fields[name.lower()] = value.strip() if old is None else f'{old} AND {value.strip()}'
    return fields
