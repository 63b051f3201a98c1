#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Types the commands of README.md into the login shell of a fresh Debian, as an ordinary user, from
the clone to the first answer of a real agent in `acp-broker chat`; the agent's model is scripted.
It prints how long each command took, how many keys the configuration took, and the screen.
Everything lies in a temporary folder. It needs root, Debian's mirror and npm's registry.

    newcomer.py [--mirror URL] [--suite NAME] [--base FOLDER]
"""

import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time

from package import ROOT, SECONDS, Failed, count_one, inside, of_debian, run

sys.path[1:1] = [str(ROOT / 'tests/interop')]

from model import Model  # noqa: E402

USER = 'kim'
PACKAGES = 'sudo,git,ca-certificates'  # what somebody with a clone has installed
CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
ANSWER = 'All of it is done.'
KEYS_MAX = 10  # to configure it
CLONE = 'git clone -q /srv/acp-broker && cd acp-broker'
QUESTION = re.compile(r'\[(1|Y/n)\]\s*$')  # Enter takes it

# Shows the number of the command, and the status of the command before it.
PROMPT = r'\u@fresh \#:$? \w\$ '

# A real root folder instead of a chroot: programs in a chroot can make no user namespaces.
ENTER = '''
mount --bind "$1" "$1" && cd "$1" && mount --rbind /dev dev && mount --rbind /sys sys &&
mount -t proc proc proc && pivot_root . mnt && umount -l mnt && exec su - "$2"
'''


def readme_commands():
    """The commands that the README asks a newcomer to type before `acp-broker init`, in order."""
    text = (ROOT / 'README.md').read_text()

    def section(name):
        return re.search(rf'^## {name}\n(.*?)^## ', text, re.M | re.S).group(1)

    def block(name):
        lines = re.search(r'^```sh\n(.*?)^```', section(name), re.M | re.S).group(1).splitlines()
        return [re.sub(r'\s+# .*', '', line) for line in lines]
    before = re.findall(r'`(sudo [^`]*)`', section('The first session'))
    *first, init, chat = block('The first session')
    if (init, chat) != ('acp-broker init', 'acp-broker chat') or not before:
        raise Failed('README.md has other commands than this expects')
    return [*block('Install'), *before, *first]


class Shell:
    """A login shell in a tmux terminal: sends keys and reads the screen."""

    def __init__(self, folder, root):
        self.folder, self.number = folder, 1
        self.tmux('new-session', '-d', '-x', '100', '-y', '40', shlex.join(
            ['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', ENTER, 'enter',
             str(root), USER]))
        self.wait(lambda: self.ended(1))

    def tmux(self, *words):
        return run('tmux', '-u', '-S', self.folder / 'tmux', '-f', self.folder / 'tmux.conf',
                   *words)

    def screen(self):
        return self.tmux('capture-pane', '-p', '-J', '-S', '-').rstrip()

    def wait(self, is_there):
        end = time.monotonic() + SECONDS
        while not is_there():
            if time.monotonic() > end:
                raise Failed(f'not on the screen in time:\n{self.screen()[-3000:]}')
            time.sleep(0.05)

    def ended(self, number):
        """The prompt for the command of this number, or None if it is not there yet."""
        return re.search(rf'^{USER}@fresh {number}:(\d+)', self.screen(), re.M)

    def key(self, key):
        self.tmux('send-keys', key)

    def type(self, line):
        self.tmux('send-keys', '-l', line)
        self.key('Enter')

    def cpu(self):
        """Seconds of processor time that the shell's programs have used, without those of sudo."""
        pids = [self.tmux('display-message', '-p', '#{pane_pid}').strip()]
        for pid in pids:
            if pathlib.Path(f'/proc/{pid}/comm').read_text() == 'bash\n':
                fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
                return sum(map(int, fields[13:15])) / os.sysconf('SC_CLK_TCK')
            pids += pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
        raise Failed('there is no shell')

    def run(self, line):
        """Runs a line; returns the number of questions that Enter answered, and the output."""
        before, answered, keys = len(self.screen()), '', 0
        self.type(line)
        while True:
            screen = self.screen()
            ended = self.ended(self.number + 1)
            if ended:
                break
            if QUESTION.search(screen) and screen != answered:
                answered, keys = screen, keys + 1
                self.key('Enter')
            time.sleep(0.3)
        self.number += 1
        if ended.group(1) != '0':
            raise Failed(f'{line}: status {ended.group(1)}\n{screen[before:][-3000:]}')
        return keys, self.screen()[before:ended.start()]

    def end(self):
        subprocess.run(['tmux', '-S', str(self.folder / 'tmux'), 'kill-server'], check=False,
                       capture_output=True)


class Watch:
    """Measures how long each step takes."""

    def __init__(self, shell):
        self.shell, self.begin = shell, time.monotonic()
        self.last, self.last_cpu = self.begin, shell.cpu()

    def step(self, what, keys):
        now, cpu = time.monotonic(), self.shell.cpu()
        print(f'{now - self.last:7.1f} s  {cpu - self.last_cpu:6.1f} s cpu  {keys} keys  {what}',
              flush=True)
        self.last, self.last_cpu = now, cpu


def make_root(folder, options):
    root = folder / 'root'
    if options.base:
        run('cp', '-a', options.base, root)
        inside(root, 'apt-get', 'update', '-q')
        inside(root, 'apt-get', 'install', '-y', '-q', '--no-install-recommends',
               *PACKAGES.split(','))
    else:
        run('debootstrap', '--variant=minbase', f'--include={PACKAGES}', options.suite, root,
            options.mirror)
    inside(root, 'useradd', '--create-home', '--shell', '/bin/bash', USER)
    (root / 'etc/sudoers.d' / USER).write_text(f'{USER} ALL=(ALL) NOPASSWD: ALL\n')
    shutil.copy('/etc/resolv.conf', root / 'etc/resolv.conf')
    (root / 'etc/hosts').write_text(f'127.0.0.1 localhost {socket.gethostname()}\n')
    shutil.copy(CERTIFICATES, root / CERTIFICATES[1:])  # the authorities that this machine trusts
    for name in ('etc/npmrc', 'usr/local/etc/npmrc'):  # Debian's Node.js, and the newer one
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f'cafile={CERTIFICATES}\n')
    run('git', 'clone', '-q', '--bare', ROOT, root / 'srv/acp-broker')
    inside(root, 'chown', '-R', USER, '/srv/acp-broker')
    return root


def log_in_to_the_model(root, model):
    """Logs the agent in: it gets a key, and the address of the scripted model."""
    (root / 'home' / USER / '.profile').write_text(
        f'export ANTHROPIC_API_KEY=x ANTHROPIC_BASE_URL={model.url} DISABLE_AUTOUPDATER=1\n'
        f'export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1\n'
        f"PS1='{PROMPT}'\n")


def configure(shell, watch):
    keys, screen = shell.run('acp-broker init')
    watch.step('acp-broker init', keys)
    if keys > KEYS_MAX:
        raise Failed(f'acp-broker init takes {keys} keys')
    return screen


def talk(shell, watch):
    """Waits for the first answer in a chat."""
    before = len(shell.screen())
    shell.type('acp-broker chat')
    shell.wait(lambda: '\n> ' in shell.screen()[before:] + ' ')
    shell.type('What does this project do?')
    shell.wait(lambda: ANSWER in shell.screen()[before:])
    watch.step('acp-broker chat, to the first answer', 0)
    print(f'{watch.last - watch.begin:7.1f} s  in all, without the debootstrap', flush=True)
    shell.key('C-d')
    shell.wait(lambda: shell.ended(shell.number + 1))
    shell.number += 1
    return shell.screen()[before:]


def arrive(folder, options):
    model = Model([], ANSWER)
    (folder / 'tmux.conf').write_text('set -g history-limit 100000\n')
    root = make_root(folder, options)
    log_in_to_the_model(root, model)
    shell = Shell(folder, root)
    try:
        watch = Watch(shell)
        for line in (CLONE, *readme_commands()):
            keys, _ = shell.run(line)
            watch.step(line, keys)
        screens = configure(shell, watch) + talk(shell, watch)
        _, told = shell.run('acp-broker doctor')
        watch.step('acp-broker doctor', 0)
        print(screens + told)
        if 'A session works.' not in told or model.problems:
            raise Failed(f'{model.problems}')
    finally:
        shell.end()
        model.close()


def main():
    parser = of_debian(__doc__)
    parser.add_argument('--base', help='a fresh root folder, which is copied')
    options = parser.parse_args()
    count_one('newcomer', lambda folder: arrive(folder, options))


if __name__ == '__main__':
    main()
