#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tee.py FILE COMMAND...: runs a command and writes down each line of its stdin and stdout."""

import subprocess
import sys
import threading


def copy(source, target, log, mark, lock):
    for line in iter(source.readline, b''):
        with lock:
            log.write(mark + line)
            log.flush()
        try:
            target.write(line)
            target.flush()
        except OSError:
            break
    try:
        target.close()
    except OSError:
        pass


def main():
    with open(sys.argv[1], 'ab') as log:
        lock = threading.Lock()
        process = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        incoming = threading.Thread(
            target=copy, args=(sys.stdin.buffer, process.stdin, log, b'< ', lock), daemon=True)
        incoming.start()
        copy(process.stdout, sys.stdout.buffer, log, b'> ', lock)
        sys.exit(process.wait())


if __name__ == '__main__':
    main()
