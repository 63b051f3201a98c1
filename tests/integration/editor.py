#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
An editor to be killed: editor.py DIR PROMPT COMMAND... starts the command, opens a session, sends
one prompt, prints "ready PID" and waits for its end.
"""

import sys
import time

from acp import Client


def main():
    directory, prompt, *command = sys.argv[1:]
    client = Client(command, cwd=directory)
    client.initialize()
    client.prompt(client.new_session(directory), *prompt.split(';'))
    print(f'ready {client.pid}', flush=True)
    time.sleep(120)


if __name__ == '__main__':
    main()
