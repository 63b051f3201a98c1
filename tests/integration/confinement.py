# SPDX-License-Identifier: MIT
"""For tests of the confinement of agents; as root they become another user."""

import atexit
import ctypes
import os
import shutil
import sys

USER = 12345
FSOPEN = 430  # this and the next are the same on all processors
LANDLOCK_CREATE_RULESET = 444

# What a process in a cell may have open when it starts; /dev/null is the cell's.
INNER_TARGETS = (r'^(/dev/null|(pipe|socket):\[\d+\]|'
                 r'anon_inode:\[?(eventpoll|eventfd|timerfd|signalfd)\]?)$')


def confinement():
    """`required`, unless the kernel lacks Landlock's scopes, which `required` needs."""
    version = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
    return 'required' if version >= 6 else 'yes'


CONFINE = confinement()


def become_user(*folders):
    """As root, a child goes on as another user; the process that made the folders removes them."""
    if os.geteuid() != 0:
        for folder in folders:
            atexit.register(shutil.rmtree, folder)
        return
    pid = os.fork()
    if pid != 0:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for folder in folders:
            shutil.rmtree(folder)
        os._exit(status if status >= 0 else 1)
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    os.chdir('/')


# How programs call bubblewrap: as they are taught to, as codex does, as sandbox-runtime (Claude
# Code's) does.
SANDBOXES = {
    'bubblewrap': 'bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all',
    'codex': 'bwrap --new-session --die-with-parent --ro-bind / / --dev /dev --bind "$PWD" "$PWD" '
             '--unshare-user --unshare-pid --unshare-net --proc /proc --',
    'sandbox-runtime': 'bwrap --new-session --die-with-parent --unshare-net --bind "$PWD/bridge" '
                       '"$PWD/bridge" --setenv BRIDGE "$PWD/bridge" --ro-bind / / '
                       '--bind "$PWD" "$PWD" --ro-bind "$PWD/file" "$PWD/file" --dev /dev '
                       '--unshare-pid --proc /proc --',
}

# Serves a socket beside bubblewrap, as sandbox-runtime's proxies do, and runs the rest.
BRIDGE = """
import os, socket, subprocess, sys
server = socket.socket(socket.AF_UNIX)
server.bind('bridge')
server.listen()
child = subprocess.run(['sh', '-c', sys.argv[1]])
server.close()
os.unlink('bridge')
sys.exit(child.returncode)
"""

# What a program in these sandboxes says of itself.
INSIDE = """
import errno, os, socket, sys
def said(call, *words):
    try:
        call(*words)
        return 'yes'
    except OSError as failed:
        return errno.errorcode[failed.errno]
def connect(family, address):
    socket.socket(family).connect(address)
print('<pid', os.getpid() < 10, 'work', said(open, 'made', 'w'), 'file', said(open, 'file', 'a'),
      'etc', said(open, '/usr/made', 'w'), 'key', said(open, sys.argv[1]),
      'bridge', said(connect, socket.AF_UNIX, 'bridge'),
      'loopback', said(connect, socket.AF_INET, ('127.0.0.1', int(sys.argv[2]))), end='>\\n')
"""


def own_sandboxes(folder, key, port):
    """Lines for sh(1) in this folder, by the sandbox in which they look around."""
    (folder / 'bridge.py').write_text(BRIDGE)
    (folder / 'inside.py').write_text(INSIDE)
    inner = f'/usr/bin/python3 inside.py {key} {port}'
    return {name: f"/usr/bin/python3 bridge.py '{line} {inner}' 2>&1"
            for name, line in SANDBOXES.items()}


# Starts the MCP server that the agent was given last, as the agent would, and runs a command.
USE_SERVER = """
import json, os, subprocess, sys
line = [line for line in open('/tmp/journal') if '"session/new"' in line][-1]
entry = json.loads(line[2:])['params']['mcpServers'][-1]
server = subprocess.Popen([entry['command'], *entry['args']], stdin=-1, stdout=-1, text=True,
    env={**os.environ, **{item['name']: item['value'] for item in entry['env']}})
def call(number, method, params):
    server.stdin.write(json.dumps({'jsonrpc': '2.0', 'id': number, 'method': method,
                                   'params': params}) + '\\n')
    server.stdin.flush()
    return json.loads(server.stdout.readline())['result']
call(1, 'initialize', {'protocolVersion': '2025-06-18'})
result = call(2, 'tools/call', {'name': 'exec', 'arguments': {'command': sys.argv[1:]}})
server.stdin.close()
print('<' + ' '.join(item['text'] for item in result['content']).replace('\\n', ' ') + '>')
"""

# A program that executes another one, which inherits a file, a folder and a terminal.
LEAVING = """
import os, sys
for number, name in enumerate((sys.argv[1], '/', '/dev/ptmx'), 7):
    fd = os.open(name, os.O_RDWR if number == 9 else os.O_RDONLY)
    os.dup2(fd, number)
    if fd != number:
        os.close(fd)
os.execv(sys.argv[2], sys.argv[2:])
"""


def leaving(path):
    """As an editor that forgets O_CLOEXEC starts the broker, with this file at 7."""
    return [sys.executable, '-c', LEAVING, str(path)]


# A program that executes another one, in which a system call then fails.
REFUSING = """
import ctypes, os, struct, sys
call, error = int(sys.argv[1]), int(sys.argv[2])
steps = b''.join(struct.pack('HBBI', *step) for step in (
    (0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x00050000 | error),
    (0x06, 0, 0, 0x7fff0000)))
program = ctypes.create_string_buffer(steps)
head = struct.pack('HxxxxxxP', 4, ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, head, 0, 0) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""


def refusing(call, error):
    return [sys.executable, '-c', REFUSING, str(call), str(error)]
