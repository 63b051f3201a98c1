# SPDX-License-Identifier: MIT
"""
What programs in a sandbox connect to: a port that greets, HTTP with a stream of bytes, and HTTPS
with packages. Prints the ports, and ends with its stdin.

    origin.py PACKAGES CERTIFICATE
"""

import base64
import gzip
import hashlib
import http.server
import io
import json
import random
import socket
import ssl
import sys
import tarfile
import threading

FILES_IN_PACKAGE, FILE_BYTES = 12, 2000
PIECE = b"x" * (1 << 20)


def name_of(number):
    return f"bench-package-{number:03}"


def make_package(number):
    """The bytes of an npm package, always the same."""
    chance = random.Random(number)
    out = io.BytesIO()
    manifest = json.dumps({"name": name_of(number), "version": "1.0.0", "main": "file0.js"})
    files = {"package.json": manifest.encode()}
    for i in range(FILES_IN_PACKAGE):
        text = "".join(chance.choices("abcdefghij \n", k=FILE_BYTES))
        files[f"lib/file{i}.js"] = f"/* {text} */\n".encode()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(out.getvalue(), 1, mtime=0)


def write_project(folder, url, packages):
    """Writes package.json and package-lock.json of a project that needs all of the packages."""
    root = {"name": "bench", "version": "1.0.0",
            "dependencies": {name_of(number): "1.0.0" for number in range(len(packages))}}
    entries = {"": root}
    for number, content in enumerate(packages):
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        entries[f"node_modules/{name_of(number)}"] = {
            "version": "1.0.0", "resolved": f"{url}/package/{number}.tgz",
            "integrity": f"sha512-{digest}"}
    lock = {"name": "bench", "version": "1.0.0", "lockfileVersion": 3, "requires": True,
            "packages": entries}
    for path, value in (("package.json", root), ("package-lock.json", lock)):
        (folder / path).write_text(json.dumps(value), encoding="ascii")


class Handler(http.server.BaseHTTPRequestHandler):
    """/package/NUMBER.tgz and /bytes/COUNT."""

    protocol_version = "HTTP/1.1"
    packages: list = []

    def do_GET(self):
        kind, _, what = self.path.lstrip("/").partition("/")
        number = int(what.removesuffix(".tgz"))
        content = self.packages[number] if kind == "package" else None
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) if content else number))
        self.end_headers()
        if content:
            self.wfile.write(content)
        while not content and number > 0:
            self.wfile.write(PIECE[:number])
            number -= len(PIECE)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """
    Takes all of npm's connections at once. With the module's backlog of 5 the kernel drops some of
    their SYNs, by chance, and npm waits a second for each to be sent again.
    """

    daemon_threads = True
    request_queue_size = 128


def greet(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"!")


def serve(certificate=None):
    """
    Starts a server that runs on threads, with HTTPS if it gets a certificate and its key; returns
    the port.
    """
    server = Server(("0.0.0.0", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def main():
    """Serves until stdin ends."""
    Handler.packages = [make_package(number) for number in range(int(sys.argv[1]))]
    greeter = socket.create_server(("0.0.0.0", 0), backlog=128)
    threading.Thread(target=greet, args=(greeter,), daemon=True).start()
    print(json.dumps({"greeting": greeter.getsockname()[1], "http": serve(),
                      "https": serve(sys.argv[2])}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
