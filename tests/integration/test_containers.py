#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`backend = container` with a real podman and runc. The image has only folders and links; the
programs are those of this machine, which podman's own configuration shows to every container. Skips
if podman, runc or root's rights are missing.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import unittest

import processes

from case import AGENT, BROKER, Case, main
from processes import PATIENCE

IMAGE = 'localhost/box:1'
LINK = {'answer-timeout': '10m', 'create-timeout': '10m', 'command-timeout': '10m',
        'prepare-timeout': '10m', 'link-grace': '10m'}
ENGINE = '''[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
netns = "host"
volumes = ["/usr:/usr:ro", "{agent}:{agent}:ro"]
'''
STORAGE = '''[storage]
driver = "overlay"
graphroot = "{dir}/storage"
runroot = "{dir}/run"
'''


@unittest.skipUnless(shutil.which('podman') and shutil.which('runc'), 'there is no podman or runc')
@unittest.skipUnless(os.geteuid() == 0, 'a container with the programs of this machine needs root')
class Containers(Case):
    def setUp(self):
        super().setUp()
        self.state = self.dir / 'home/state/acp-broker'
        for name, text in (('engine', ENGINE), ('storage', STORAGE)):
            (self.dir / f'{name}.conf').write_text(
                text.format(dir=self.dir, agent=pathlib.Path(AGENT).parent))
        self.import_image()

    def clean_up(self):
        for client in self.clients:
            client.finish()
        for name in self.containers():
            self.podman('rm', '--force', '--time', '0', name)
        super().clean_up()
        subprocess.run(['umount', str(self.dir / 'storage/overlay')], check=False,
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- the engine ----

    def environment(self):
        home = self.dir / 'home'
        policy = home / '.config/containers/policy.json'
        policy.parent.mkdir(parents=True, exist_ok=True)
        policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        env = {**super().environment(), 'CONTAINERS_CONF': str(self.dir / 'engine.conf'),
               'CONTAINERS_STORAGE_CONF': str(self.dir / 'storage.conf')}
        env.pop('XDG_CONFIG_HOME')
        return env

    def import_image(self):
        root = self.dir / 'root'
        for name in ('usr', 'etc', 'proc', 'dev', 'sys', 'tmp', 'root', 'run'):
            (root / name).mkdir(parents=True)
        for name in ('bin', 'sbin', 'lib', 'lib64'):
            if os.path.islink(f'/{name}'):
                (root / name).symlink_to(os.readlink(f'/{name}'))
        (root / 'tmp').chmod(0o1777)
        with tarfile.open(self.dir / 'root.tar', 'w') as tar:
            tar.add(root, arcname='.')
        done = self.podman('import', str(self.dir / 'root.tar'), IMAGE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def podman(self, *words):
        env = {name: value for name, value in self.environment().items()
               if name != processes.MARK}  # a container may outlive the test's other processes
        return subprocess.run(['podman', *words], env=env, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=PATIENCE)

    def containers(self):
        if not (self.dir / 'engine.conf').exists():
            return []
        return self.podman('ps', '--all', '--format', '{{.Names}}').stdout.split()

    def seen(self, template, name=None):
        return self.podman('inspect', '--format', template,
                           name or self.containers()[0]).stdout.strip()

    def running_containers(self):
        return self.podman('ps', '--format', '{{.Names}}').stdout.split()

    def wait_for_sleep(self, name):
        self.assertTrue(processes.wait_until(lambda: self.podman(
            'exec', name, 'pgrep', '-x', 'sleep').returncode == 0))

    # ---- the broker ----

    def agent_argv(self, *flags):
        return [AGENT, *flags]

    def config(self, deadlines=True, policy=None, backend='container', **keys):
        return super().config(deadlines, policy, backend, **{'engine': 'podman', **LINK, **keys})

    def opened(self, **keys):
        client = self.broker(options=self.config(**keys))
        client.initialize()
        return client, client.new_session(self.work)

    def end(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def with_podman(self, lines, **keys):
        """A broker that finds a podman on PATH that runs these lines first."""
        fake = self.dir / 'bin/podman'
        fake.parent.mkdir()
        fake.write_text(f'#!/bin/sh\n{lines}\nexec {shutil.which("podman")} "$@"\n')
        fake.chmod(0o755)
        return self.start(self.broker_argv(*self.config(**keys), agent=self.agent_argv()),
                          env={**self.environment(),
                               'PATH': f'{fake.parent}:{os.environ["PATH"]}'})

    def refused(self, code, **keys):
        client = self.broker(options=self.config(**keys))
        error = self.failure(client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}})), code)
        client.finish()
        return error

    def notes(self):
        return [json.loads(path.read_text())
                for path in sorted((self.state / 'container').glob('*.json'))]

    def run_broker(self, *words, status=0):
        done = subprocess.run([BROKER, *words], cwd=self.work, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return done


class Sessions(Containers):
    def test_a_container_of_an_image_is_stopped_and_started_again(self):
        for turn in ('one', 'two'):
            client, session = self.opened(image=IMAGE)
            client.prompt(session, f'terminal cat /proc/1/cmdline; echo {turn} > made')
            self.assertIn('acp-runner\\u0000hold', client.wait_text('terminal/output ->'))
            self.end(client)
            self.assertEqual((self.work / 'made').read_text(), f'{turn}\n')
            name, = self.containers()
            self.assertEqual(self.running_containers(), [])
            self.assertEqual(self.seen('{{.HostConfig.Privileged}}'), 'false')
            self.assertIn('/.acp-broker/acp-runner false;', self.seen(
                '{{range .Mounts}}{{.Destination}} {{.RW}};{{end}}'))
            self.assertEqual(self.seen('{{index .Config.Labels "acp-broker.sandbox"}}'), name)
        self.assert_nothing_runs()
        listed = json.loads(self.run_broker(
            'sandboxes', 'list', '--json', *self.config(image=IMAGE)).stdout)['sandboxes']
        self.assertEqual([one['state'] for one in listed], ['stopped'])
        self.run_broker('sandboxes', 'delete', name, *self.config(image=IMAGE))
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_limits_hold_and_other_settings_make_another_container(self):
        limits = {'memory': '200m', 'cpu': '1', 'processes': '77', 'network': 'blocked'}
        client, session = self.opened(image=IMAGE, **limits)
        client.prompt(session, 'terminal tail -n +3 /proc/net/dev | cut -d: -f1')
        self.assertIn('"output":"    lo\\n"', client.wait_text('terminal/output ->'))
        self.assertEqual(
            self.seen('{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} '
                      '{{.HostConfig.NetworkMode}}'), f'{200 << 20} 77 none')
        self.end(client)
        client, _ = self.opened(image=IMAGE, memory='200m')
        self.assertEqual(len(self.containers()), 2)
        self.end(client)
        self.assert_nothing_runs()

    def test_a_session_goes_on_in_a_container_of_the_present_settings(self):
        client, session = self.opened(image=IMAGE)
        client.prompt(session, 'terminal echo made > made')
        self.end(client)
        client = self.broker(options=self.config(image=IMAGE, network='blocked'))
        client.initialize()
        client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                     'mcpServers': []})
        client.prompt(session, 'terminal cat made; tail -n +3 /proc/net/dev | cut -d: -f1')
        self.assertIn('"output":"made\\n    lo\\n"', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assertEqual(len(self.containers()), 2)

    def test_a_container_that_is_there_is_used_and_left_alone(self):
        self.podman('run', '--detach', '--name', 'mine', IMAGE, '/usr/bin/sleep', 'infinity')
        client, session = self.opened(container='mine')
        client.prompt(session, 'terminal cat /proc/1/comm; echo made > made')
        self.assertIn('sleep', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assertEqual(self.running_containers(), ['mine'])
        self.assertEqual(self.notes(), [])
        self.podman('rm', '--force', '--time', '0', 'mine')
        error = self.refused('EXEC_COMMAND_FAILED', container='mine')
        self.assertNames(error['message'], 'mine')


class Option(Containers):
    """`acp-broker --container IMAGE -- AGENT`, without a configuration."""

    OPTIONS = ['--container', IMAGE]

    def test_a_container_is_of_one_session(self):
        (self.work / 'mine').write_text('mine\n')
        client = self.broker(options=self.OPTIONS)
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'terminal cat mine /proc/1/cmdline; echo made > made')
        self.assertIn('mine\\n/.acp-broker', client.wait_text('terminal/output ->'))
        self.assertEqual(len(self.containers()), 1)
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assertEqual((self.containers(), self.notes()), ([], []))
        self.assert_nothing_runs()

    def test_one_prompt_from_a_shell(self):
        done = self.run_broker('exec', *self.OPTIONS, '--approve', 'all', 'terminal echo x > made',
                               '--', AGENT)
        self.assertIn('terminal/release', done.stdout)
        self.assertEqual((self.work / 'made').read_text(), 'x\n')
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_the_broker_is_killed(self):
        client = self.broker(options=self.OPTIONS)
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'say hello')
        client.start_prompt(session, 'terminal echo there > made; sleep 600')
        name, = self.containers()
        self.wait_for_sleep(name)
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        client = self.broker(options=self.OPTIONS)
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: name not in self.containers()))
        self.end(client)
        self.assertEqual((self.containers(), self.notes()), ([], []))


class Ends(Containers):
    def in_a_prompt(self):
        client, session = self.opened(image=IMAGE, persistence='transient')
        waiting = client.start_prompt(session, 'terminal echo there > made; sleep 600')
        name, = self.containers()
        self.wait_for_sleep(name)
        return client, session, waiting

    def test_the_broker_is_killed_and_the_next_one_removes_the_container(self):
        client, _, _ = self.in_a_prompt()
        left, = self.containers()
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        client = self.broker(options=self.config(image=IMAGE, persistence='transient'))
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: left not in self.containers()))
        self.end(client)
        self.assertEqual((self.containers(), self.notes()), ([], []))
        self.assert_nothing_runs()

    def test_the_broker_is_killed_while_the_engine_makes_the_container(self):
        """The container that is left has the name that the next broker needs."""
        client = self.with_podman(f"""if [ "$1" = run ]; then
            {shutil.which('podman')} "$@"
            exec sleep 500
        fi""", image=IMAGE)
        client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
        self.assertTrue(processes.wait_until(self.running_containers))
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        before = self.seen('{{.Id}}')
        client, session = self.opened(image=IMAGE)
        client.prompt(session, 'terminal echo made > made')
        self.assertEqual(len(self.containers()), 1)
        self.assertNotEqual(self.seen('{{.Id}}'), before)
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assert_nothing_runs()

    def test_somebody_else_removes_the_container(self):
        client, session, waiting = self.in_a_prompt()
        self.podman('rm', '--force', '--time', '0', self.containers()[0])
        self.assertIn('error', client.response(waiting).value)
        client.finish()
        client, session = self.opened(image=IMAGE, persistence='transient')
        client.prompt(session, 'say back')
        self.end(client)
        self.assertEqual(self.containers(), [])
        self.assert_nothing_runs()


class Refusals(Containers):
    def test_an_image_that_does_not_exist(self):
        error = self.refused('EXEC_COMMAND_FAILED', image='localhost/nothing:1')
        self.assertNames(error['message'], 'start | podman | nothing')
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_an_engine_that_makes_it_otherwise(self):
        """As docker does if the kernel lacks the controller."""
        client = self.with_podman("""if [ "$1" = inspect ]; then
            printf 'memory=0\\033[2J\\n'
            exit
        fi""", image=IMAGE, memory='200m')
        error = self.failure(client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}})), 'EXEC_MADE_OTHERWISE')
        client.finish()
        self.assertNames(error['message'], f'memory={200 << 20} | memory=0')
        self.assertNotIn('\x1b', error['message'])
        self.assertEqual((self.containers(), self.notes()), ([], []))


if __name__ == '__main__':
    main()
