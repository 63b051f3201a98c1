#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
What is measured in a sandbox; prints one JSON value.

    inside.py connect HOST PORT COUNT    milliseconds from the name to the first byte, each time
    inside.py load HOST PORT BYTES       MiB a second of one download
    inside.py npm REGISTRY               seconds of `npm ci`, with nothing kept of an earlier one

BENCH_PROXY=1: only a proxy leads out, and https_proxy names it.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse

DEADLINE_SECONDS = 120


def through_proxy(host, port):
    """Connects by CONNECT."""
    proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
    connection = socket.create_connection((proxy.hostname, proxy.port), DEADLINE_SECONDS)
    head = f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n"
    if proxy.username:
        user = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        head += f"Proxy-Authorization: Basic {user}\r\n"
    connection.sendall(head.encode() + b"\r\n")
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(1) or sys.exit(f"the proxy said {answer!r}")
    if b" 200 " not in answer.split(b"\r\n")[0]:
        sys.exit(f"the proxy said {answer!r}")
    return connection


def connect(host, port):
    if os.environ.get("BENCH_PROXY"):
        return through_proxy(host, port)
    return socket.create_connection((host, port), DEADLINE_SECONDS)


def measure_connect(host, port, count):
    taken = []
    for _ in range(int(count)):
        begin = time.monotonic()
        with connect(host, int(port)) as connection:
            if connection.recv(1) != b"!":
                sys.exit("no greeting came")
        taken.append((time.monotonic() - begin) * 1000)
    return taken


def measure_load(host, port, size):
    begin = time.monotonic()
    with connect(host, int(port)) as connection:
        connection.sendall(f"GET /bytes/{size} HTTP/1.1\r\nHost: {host}\r\n"
                           "Connection: close\r\n\r\n".encode())
        buffer, got = bytearray(1 << 20), 0
        while count := connection.recv_into(buffer):
            got += count
    if got < int(size):
        sys.exit(f"{got} bytes came")
    return int(size) / (1 << 20) / (time.monotonic() - begin)


def measure_npm(registry):
    for name in ("node_modules", "npm-cache"):
        shutil.rmtree(name, ignore_errors=True)
    begin = time.monotonic()
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--registry", registry,
         "--strict-ssl=false", "--fetch-retries=0",
         "--cache", os.path.abspath("npm-cache"), "--no-update-notifier"],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return time.monotonic() - begin


if __name__ == "__main__":
    MEASURES = {"connect": measure_connect, "load": measure_load, "npm": measure_npm}
    print(json.dumps(MEASURES[sys.argv[1]](*sys.argv[2:])))
