#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The files of examples/: systemd accepts the units, and the container has what it needs."""

import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import unittest

import case
import processes
from processes import PATIENCE

EXAMPLES = case.ROOT / 'examples'
UNITS = EXAMPLES / 'systemd'
CONTAINER = (EXAMPLES / 'container' / 'Containerfile').read_text()
INSTALLED = '/usr/bin/acp-broker'
PROFILE = EXAMPLES / 'apparmor' / 'acp-broker'
MANAGER = '/lib/systemd/systemd'

# Runs in namespaces of its own, because systemd's user manager asks whether systemd booted the
# system.
BOOTED = 'mount -t tmpfs none /run && mkdir -p /run/systemd/system && "$@" --user; exit $?'


def settings(name):
    """The keys of a unit, with the last value of each."""
    lines = (UNITS / name).read_text().splitlines()
    return dict(line.split('=', 1) for line in lines if re.match(r'\w+=', line))


def packages(stage):
    """The packages that a stage of the container installs."""
    part = CONTAINER.split('FROM ')[stage].replace('\\\n', ' ')
    words = re.search(r'--no-install-recommends([^&\n]*)', part).group(1)
    return set(words.split())


def control_groups():
    """The folder of this process in each hierarchy that systemd keeps its units in."""
    mounts = pathlib.Path('/proc/self/mountinfo').read_text()
    places = [line.split() for line in mounts.splitlines()]
    for line in pathlib.Path('/proc/self/cgroup').read_text().splitlines():
        _, names, path = line.split(':', 2)
        for place in places:
            kind, options = place[place.index('-') + 1], place[-1].split(',')
            if (kind == 'cgroup2' if not names else
                    names == 'name=systemd' and kind == 'cgroup' and names in options):
                yield pathlib.Path(place[4]) / path.lstrip('/')


class Units(case.Case):
    def placed(self, folder=None):
        """Copies the units, with the path of the program that the tests use."""
        folder = folder or self.dir / 'units'
        folder.mkdir(parents=True)
        for path in UNITS.iterdir():
            text = path.read_text()
            self.assertEqual(text.count(INSTALLED), 'ExecStart=' in text)
            (folder / path.name).write_text(text.replace(INSTALLED, case.BROKER))
        return folder

    @unittest.skipUnless(shutil.which('systemd-analyze'), 'systemd-analyze is not installed')
    def test_systemd_understands_them(self):
        folder = self.placed()
        names = sorted(str(path) for path in folder.iterdir())
        runtime = self.dir / 'runtime'
        runtime.mkdir(mode=0o700)
        env = {**self.environment(), 'XDG_RUNTIME_DIR': str(runtime),
               'SYSTEMD_UNIT_PATH': f'{folder}:'}
        done = subprocess.run(['systemd-analyze', 'verify', '--user', '--man=no', *names], env=env,
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        ours = [line for line in done.stderr.splitlines() if 'acp-broker' in line]
        self.assertEqual((done.returncode, ours), (0, []), done.stderr)

    @unittest.skipUnless(shutil.which('systemd-socket-activate'),
                         'systemd-socket-activate is not installed')
    def test_a_connection_is_a_session(self):
        words = settings('acp-broker@.service')['ExecStart'].split()
        keys = settings('acp-broker.socket')
        self.assertEqual((keys['Accept'], keys['SocketMode']), ('yes', '0600'))
        self.config(policy=['mode = approve-all'])
        config = self.dir / 'home' / 'config' / 'acp-broker' / 'config'
        config.parent.mkdir(parents=True)
        config.write_text(f'[agent "a"]\n\tcommand = {case.AGENT}\n[profile "job"]\n\tagent = a\n')
        place = self.dir / 'broker.sock'
        env = self.environment()
        listener = subprocess.Popen(
            ['systemd-socket-activate', '--accept', '--inetd', '-l', str(place),
             *(f'--setenv={name}' for name in env), case.BROKER, *words[1:]],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            self.assertTrue(processes.wait_until(place.exists, PATIENCE))
            self.converse(place)
        finally:
            listener.terminate()
            listener.wait(PATIENCE)

    def manager(self, env):
        """A systemd user manager, in control groups, namespaces and a /run of its own."""
        groups = [group / f'acp-test-{os.getpid()}' for group in control_groups()]
        self.addCleanup(self.remove_groups, groups)
        try:
            for group in groups:
                group.mkdir()
        except OSError as why:
            self.skipTest(f'no control groups can be made here: {why}')
        enter = 'for group; do echo $$ >"$group/cgroup.procs" || exit; done\n'
        argv = ['unshare', '--mount', '--pid', '--cgroup', '--fork', '--kill-child',
                '--mount-proc', '/bin/sh', '-c', BOOTED, 'sh', MANAGER]
        started = subprocess.Popen(
            ['/bin/sh', '-c', f'{enter}exec {" ".join(map(shlex.quote, argv))}', 'sh',
             *map(str, groups)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        self.addCleanup(self.end_manager, started)
        children = pathlib.Path(f'/proc/{started.pid}/task/{started.pid}/children')
        self.assertTrue(processes.wait_until(
            lambda: started.poll() is not None or children.read_text(), PATIENCE))
        if started.poll() is None:
            self.inside = ['nsenter', '-t', children.read_text().strip(), '-m', '-p', '-C']
            self.assertTrue(processes.wait_until(lambda: started.poll() is not None or self.ask(
                env, 'show', '-p', 'Version').returncode == 0, PATIENCE))
        if started.poll() is not None:
            self.skipTest(f'no manager runs here: {started.stderr.read().decode()}')

    def end_manager(self, started):
        started.kill()  # this also kills all processes of its namespace
        started.communicate(timeout=PATIENCE)

    def remove_groups(self, groups):
        def gone(group):
            for path in sorted(group.rglob('*/'), reverse=True):
                path.rmdir()
            group.rmdir()
            return True

        def try_to_remove(group):
            try:
                return not group.exists() or gone(group)
            except OSError:  # its processes are ending at this moment
                return False
        for group in groups:
            self.assertTrue(processes.wait_until(lambda: try_to_remove(group), PATIENCE))

    def ask(self, env, *words):
        return subprocess.run([*self.inside, 'systemctl', '--user', *words], env=env, text=True,
                              capture_output=True, timeout=PATIENCE, check=False)

    def control(self, env, *words):
        done = self.ask(env, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    @unittest.skipUnless(os.path.exists(MANAGER) and shutil.which('systemctl')
                         and os.getuid() == 0, 'only root can start a manager of systemd here')
    def test_a_users_manager_runs_them(self):
        runtime = self.dir / 'runtime'
        runtime.mkdir(mode=0o700)
        env = {**self.environment(), 'XDG_RUNTIME_DIR': str(runtime)}
        config = pathlib.Path(env['XDG_CONFIG_HOME'])
        (config / 'acp-broker').mkdir(parents=True)
        (config / 'acp-broker' / 'config').write_text(
            f'[agent "a"]\n\tcommand = {case.AGENT}\n[profile "job"]\n\tagent = a\n')
        self.manager(env)
        self.placed(config / 'systemd' / 'user')
        self.control(env, 'daemon-reload')
        self.control(env, 'enable', '--now', 'acp-broker.socket', 'acp-broker-collect.service')
        self.assertEqual(self.control(env, 'show', '-p', 'Result,ExecMainStatus', '--value',
                                      'acp-broker-collect.service').split(), ['success', '0'])
        self.converse(runtime / 'acp-broker.sock')
        self.assertTrue(processes.wait_until(lambda: not self.control(
            env, 'list-units', '--all', '--plain', '--no-legend', 'acp-broker@*'), PATIENCE))

    def converse(self, place):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(place))
            stream = connection.makefile('rw')
            params = {'protocolVersion': 1, 'clientCapabilities': {}}
            stream.write(json.dumps({'jsonrpc': '2.0', 'id': 0, 'method': 'initialize',
                                     'params': params}) + '\n')
            stream.flush()
            answer = json.loads(stream.readline())
            self.assertEqual(answer['result']['_meta']['broker']['backend'], 'local')
            connection.shutdown(socket.SHUT_WR)
            self.assertEqual(stream.read(), '')  # the broker has ended


class Container(unittest.TestCase):
    """
    A machine without a container's tools cannot build the image, so the test compares its parts.
    """

    def test_it_builds_with_what_dev_builds_with(self):
        text = (case.ROOT / 'dev').read_text()
        words = set(re.search(r'build_packages="([^"]*)"', text).group(1).split())
        self.assertEqual(packages(1), words - {'scdoc'})  # without the man pages

    def test_it_has_each_library_that_the_program_opens(self):
        page = (case.ROOT / 'docs' / 'packaging.md').read_text()
        table = re.findall(r'^\| `lib[^|]*\| ([\w.+-]+) \|', page, re.M)
        self.assertGreater(len(table), 4)
        self.assertGreaterEqual(packages(2), set(table))

    def test_it_sets_the_build_up_as_packagers_do(self):
        setup = re.search(r'meson setup ([^&]*)', CONTAINER).group(1)
        options = {option['name'] for option in json.loads(subprocess.run(
            ['meson', 'introspect', '--buildoptions', str(case.ROOT / 'meson.build')],
            capture_output=True, check=True).stdout)}
        for name in re.findall(r'-D(\w+)=', setup):
            self.assertIn(name, options)
        self.assertTrue((case.ROOT / 'LICENSE').exists())


class AppArmor(unittest.TestCase):
    def test_the_profile_is_of_the_program_and_allows_namespaces(self):
        text = PROFILE.read_text()
        self.assertRegex(text, rf'(?m)^profile acp-broker {INSTALLED} flags=\(unconfined\) {{$')
        self.assertRegex(text, r'(?m)^  userns,$')
        postinst = (case.ROOT / 'debian' / 'acp-broker.postinst').read_text()
        newest = re.search(r'(?m)^abi <(abi/[0-9.]+)>,$', text)[1]
        self.assertIn(f'/etc/apparmor.d/{newest} ', postinst)

    def test_the_parser_takes_it(self):
        parser = shutil.which('apparmor_parser', path='/usr/sbin:/sbin:/usr/bin')
        if not parser:
            self.skipTest('there is no apparmor_parser')
        said = subprocess.run([parser, '--version'], capture_output=True, text=True, check=True,
                              timeout=PATIENCE)
        text = PROFILE.read_text()
        if int(re.search(r'version (\d+)', said.stdout)[1]) < 4:  # it knows no such rule
            text = text.replace('  userns,\n', '').replace('abi/4.0', 'abi/3.0')
        parsed = subprocess.run([parser, '-Q', '-K'], input=text, capture_output=True, text=True,
                                check=False, timeout=PATIENCE)
        self.assertEqual(parsed.returncode, 0, parsed.stderr)


if __name__ == '__main__':
    case.main()
