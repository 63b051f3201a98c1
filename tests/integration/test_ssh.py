#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An agent on another host: the scripted agent over a real sshd on loopback."""

import os
import shutil
import subprocess
import unittest

import case
import processes
import sshd

from acp import RpcError
from sync_case import SyncCase

from processes import PATIENCE as SECONDS
MESSAGE_MAX = 64 << 20  # max-message


@unittest.skipUnless(sshd.can_be_started(), 'there is no sshd')
class SshCase(SyncCase):
    client_name = 'auto'

    def setUp(self):
        super().setUp()
        self.server = sshd.Sshd()
        self.server.__enter__()
        self.addCleanup(self.server.stop)
        self.ssh_config = self.server.config
        # The broker finds the agent there as a user does: by the PATH of the login shell.
        bin_folder = self.server.home / 'bin'
        bin_folder.mkdir()
        (bin_folder / 'the-agent').symlink_to(case.AGENT)
        (self.server.home / '.profile').write_text(
            'echo a banner of the login shell\nPATH=$HOME/bin:$PATH; export PATH\n')

    def far(self, *flags, agent='the-agent', **keys):
        """A client whose agent works on the host "box"."""
        values = dict(case.DEADLINES, host='box', **{'ssh-config': self.ssh_config,
                      'ssh-client': self.client_name, 'resolve-timeout': '10m',
                      'connect-timeout': '10m', 'auth-timeout': '10m', 'login-timeout': '10m'})
        values.update({name.replace('_', '-'): value for name, value in keys.items()})
        path = self.dir / 'config-far'
        path.write_text('[profile "far"]\n\tbackend = ssh\n' + ''.join(
            f'\t{name} = {value}\n' for name, value in values.items() if value != ''))
        argv = [agent, *self.agent_argv(*flags)[1:]]
        return self.broker(options=['--config', str(path), '--profile', 'far'], agent=argv)

    def open_session(self, client):
        client.initialize(seconds=SECONDS)
        return client.call('session/new', {'cwd': str(self.work), 'mcpServers': []},
                           seconds=SECONDS)['sessionId']

    def end(self, client, status=0):
        client.close_stdin()
        self.assertEqual(client.wait(SECONDS), status, client.stderr)
        self.assertTrue(processes.wait_until(
            lambda: not self.server.connections(), SECONDS), 'a connection is left')

    def refused(self, **keys):
        client = self.far(**keys)
        with self.assertRaises(RpcError) as caught:
            client.initialize(seconds=SECONDS)
        client.close_stdin()
        client.wait(SECONDS)
        return caught.exception


class TerminalLogin(SshCase):
    """
    If the editor ran the login commands of an agent on another host, they would run on this
    machine. test_ssh_terminal.py runs them there.
    """

    METHODS = ('{"id":"a","type":"terminal","args":["--profile","local","--","sh","-c","x"],'
               '"env":{"ACP_BROKER_LOGIN":"0"}},'
               '{"id":"b","type":"agent","type":"terminal"},'
               '{"id":"c","name":"C","_meta":{"terminal-auth":{"command":"sh","args":[]},"x":1}}')

    def test_the_editor_gets_no_command(self):
        client = self.far('--terminal-auth', '--auth-methods', self.METHODS)
        result = client.initialize(seconds=SECONDS)
        told = result['_meta']['broker']['capabilities']
        self.assertEqual((told['isolated'], told['separate_files'], told['confined']),
                         (True, True, True))
        methods = {method['id']: method for method in result['authMethods']}
        self.assertEqual(sorted(methods), ['a', 'c', 'login', 'login-2', 'token'])
        self.assertEqual(methods['c'], {'id': 'c', 'name': 'C', '_meta': {'x': 1}})
        for name in ('a', 'login', 'login-2'):
            self.assertEqual(methods[name]['args'], [])
            self.assertEqual(list(methods[name]['env']), ['ACP_BROKER_LOGIN'])
            self.assertNotEqual(methods[name]['env']['ACP_BROKER_LOGIN'], '0')
        self.end(client)
        self.assertIn('log in there', client.stderr)  # for the command of c

    def test_one_of_this_machine_is_refused_with_what_to_do_instead(self):
        client = self.broker('--terminal-auth')
        methods = client.initialize()['authMethods']
        client.close_stdin()
        client.wait()
        method, = (method for method in methods if method['id'] == 'login')
        self.end(self.far())
        options = ['--config', str(self.dir / 'config-far'), '--profile', 'far']
        told = subprocess.run(
            self.broker_argv(*options, agent=['the-agent']), check=False,
            env={**self.environment(), **method['env']}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((told.returncode, told.stdout), (1, ''), told.stderr)
        self.assertNames(told.stderr, 'the-agent | login | this machine | start the session again')
        self.assertTrue(processes.wait_until(
            lambda: not self.server.connections(), SECONDS), 'a connection is left')


class Sessions(SshCase):
    def test_edits_travel_both_ways_around_a_prompt(self):
        (self.work / 'mine').write_text('from here\n')
        client = self.far()
        session = self.open_session(client)
        client.prompt(session, 'terminal cat mine; echo "from there" > theirs; pwd',
                      seconds=SECONDS)
        self.assertIn('from here', client.wait_text('terminal/output ->'))
        self.assertEqual((self.work / 'theirs').read_text(), 'from there\n')
        (self.work / 'mine').write_text('again\n')
        client.prompt(session, 'terminal cat mine theirs; rm theirs', seconds=SECONDS)
        self.assertEqual(self.tree(), {'mine': 'again\n'})
        root = self.runtime(client, session)
        workspaces = self.server.home / '.local/share/acp-broker/workspaces'
        self.assertEqual(root.name, 'work')
        self.assertEqual(root.parent.parent, workspaces)
        self.assertEqual((root / 'mine').read_text(), 'again\n')
        self.end(client)
        client = self.far()  # the next session finds the same folder
        self.assertEqual(self.runtime(client, self.open_session(client)), root)
        self.end(client)

    def test_files_and_paths_are_those_there_and_named_as_here(self):
        (self.work / 'a').write_text('one\n')
        client = self.far()
        session = self.open_session(client)
        root = self.runtime(client, session)
        client.prompt(session, f'read {root}/a', f'write {root}/new/b two\\n',
                      'read /etc/hostname', 'cwd', seconds=SECONDS)
        self.assertIn('one', client.wait_text('fs/read_text_file ->'))
        self.assertEqual((self.work / 'new/b').read_text(), 'two\n')
        texts = ' '.join(client.texts())
        self.assertIn('SECURITY_VIOLATION', texts)
        self.assertIn(f'cwd {self.server.home}', texts)  # where it starts, before any session
        opened, = [line for line in self.journal('<') if b'"session/new"' in line]
        self.assertIn(f'"cwd":"{root}"'.encode(), opened)
        self.end(client)

    def test_without_sync_a_directory_that_is_not_here_is_one_there(self):
        nowhere = self.dir / 'gone' / 'project'
        params = {'cwd': str(nowhere), 'mcpServers': []}
        client = self.far(sync='none')
        client.initialize(seconds=SECONDS)
        session = client.call('session/new', params, seconds=SECONDS)['sessionId']
        root = self.runtime(client, session)
        self.assertEqual(root.name, 'project')
        opened, = [line for line in self.journal('<') if b'"session/new"' in line]
        self.assertIn(f'"cwd":"{root}"'.encode(), opened)
        client.prompt(session, 'terminal pwd; echo kept > a', f'write {root}/b two\\n',
                      seconds=SECONDS)
        self.assertIn(str(root), client.wait_text('terminal/output ->'))
        self.end(client)
        client = self.far(sync='none')
        client.initialize(seconds=SECONDS)
        client.call('session/load', {**params, 'sessionId': session}, seconds=SECONDS)
        client.prompt(session, 'terminal cat a b', seconds=SECONDS)
        self.assertIn('kept\\ntwo', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assertFalse(nowhere.parent.exists())

    def test_the_environment_is_the_hosts_and_the_profiles(self):
        self.extra = {'THE_KEY': 'sesame street', 'NOT_MEANT': 'for the agent'}
        client = self.far(**{'secret-env': 'THE_KEY', 'env': 'A=1 2'})
        session = self.open_session(client)
        client.prompt(session, 'env', seconds=SECONDS)
        said = client.texts()[-1].split('\n')
        for entry in ('THE_KEY=sesame street', 'A=1 2', f'HOME={self.server.home}'):
            self.assertIn(entry, said)
        self.assertTrue(any(e.startswith(f'PATH={self.server.home}/bin:') for e in said))
        self.assertFalse(any(e.startswith('NOT_MEANT=') for e in said))
        for pid in processes.all_pids():
            words = processes.read_file(f'/proc/{pid}/cmdline')
            self.assertNotIn(b'sesame street', words)
        self.end(client)

    def test_a_path_that_is_longer_than_a_line(self):
        long = ':'.join(f'/of/the/store/{number:032}/bin' for number in range(250))
        (self.server.home / '.bashrc').write_text(f'PATH=$PATH:{long}; export PATH\n')
        with open(self.server.home / '.profile', 'a', encoding='utf-8') as profile:
            profile.write('. ~/.bashrc\n')
        client = self.far()
        client.prompt(self.open_session(client), 'env', seconds=SECONDS)
        path, = [entry for entry in client.texts()[-1].split('\n') if entry.startswith('PATH=')]
        self.assertTrue(path.startswith(f'PATH={self.server.home}/bin:'), path[:100])
        self.assertTrue(path.endswith(long), path[-100:])
        self.end(client)

    def test_the_longest_message_passes_both_ways(self):
        client = self.far(sync='none')
        session = self.open_session(client)
        client.prompt(session, 'say x', seconds=SECONDS)
        said = [message for message in client.received if message.text]
        frame = max(len(said[-1].line), len(client.sent[-1].line))
        text = os.urandom(MESSAGE_MAX).hex()[:MESSAGE_MAX - frame]
        client.prompt(session, f'say {text}', seconds=4 * SECONDS)
        self.assertTrue(client.texts()[-1] == text, 'it is another')  # without a diff of that
        self.end(client)

    def test_a_home_that_is_not_there(self):
        shutil.rmtree(self.server.home)
        (self.dir / 'there').mkdir()
        client = self.far(agent=case.AGENT, runtime_root=str(self.dir / 'there'))
        client.prompt(self.open_session(client), 'terminal echo new > new', seconds=SECONDS)
        self.assertEqual(self.tree(), {'new': 'new\n'})
        self.assertFalse(self.server.home.exists())
        self.end(client)

    def environment(self):
        return {**super().environment(), **getattr(self, 'extra', {})}

    def test_transient_folders_are_gone_when_all_is_here(self):
        client = self.far(persistence='transient')
        session = self.open_session(client)
        root = self.runtime(client, session)
        client.prompt(session, 'terminal echo late > late', seconds=SECONDS)
        (root / 'later').write_text('after the last turn\n')
        self.end(client)
        self.assertEqual(self.tree(), {'late': 'late\n', 'later': 'after the last turn\n'})
        self.assertFalse(root.exists())
        self.assertEqual(list(root.parent.parent.iterdir()), [])
        left = self.server.names_in_home()
        self.assertLessEqual(left, {'bin', '.profile', '.local'}, 'something is left there')

    def test_what_a_killed_broker_left_there_is_collected_by_the_next(self):
        client = self.far()
        root = self.runtime(client, self.open_session(client))
        (self.work / 'here').write_text('here\n')
        (root / 'there').write_text('there\n')
        client.process.kill()
        client.wait(SECONDS)
        other = self.dir / 'other'
        other.mkdir()
        client = self.far()
        client.initialize(seconds=SECONDS)
        client.call('session/new', {'cwd': str(other), 'mcpServers': []}, seconds=SECONDS)
        self.assertTrue(processes.wait_until(
            lambda: 'stopped' in [record['state'] for record in self.records()], SECONDS),
            client.stderr)
        self.assertTrue((root / 'here').exists())
        self.end(client)
        self.assertEqual(self.tree(), {'here': 'here\n', 'there': 'there\n'})
        self.assertEqual({record['state'] for record in self.records()}, {'stopped'})

    def test_what_it_needs_is_brought_before_it_starts(self):
        (self.dir / 'home').mkdir(exist_ok=True)
        (self.dir / 'home/token').write_text('secret\n')
        (self.dir / 'home/token').chmod(0o644)
        shutil.rmtree(self.server.home / 'bin')
        client = self.far(setup=f'"mkdir bin; ln -s {case.AGENT} bin/the-agent"', copy='~/token')
        self.open_session(client)
        self.assertEqual((self.server.home / 'token').read_text(), 'secret\n')
        self.assertEqual((self.server.home / 'token').stat().st_mode & 0o7777, 0o600)
        self.end(client)

    def test_nothing_is_left_when_the_broker_is_killed(self):
        client = self.far(link_grace='6s')
        session = self.open_session(client)
        client.start_prompt(session, 'terminal (setsid sleep 600 &) ; sleep 600')
        self.assertTrue(processes.wait_until(lambda: len(self.sleepers()) == 2, SECONDS))
        processes.kill(client.pid)
        self.assertTrue(processes.wait_until(
            lambda: not self.sleepers() and not self.server.connections(), SECONDS))

    def sleepers(self):
        return [pid for pid in processes.all_pids()
                if processes.read_file(f'/proc/{pid}/cmdline') == b'sleep\x00600\x00'
                and str(self.server.home).encode() in processes.read_file(f'/proc/{pid}/environ')]


class Failures(SshCase):
    def test_a_host_that_is_not_known_is_refused_with_the_line_to_add(self):
        self.server.known_hosts.write_text('')
        error = self.refused()
        self.assertEqual(error.data['code'], 'HOST_KEY_UNKNOWN')
        self.assertEqual(error.data['stage'], 'prepare')
        self.assertIn('SHA256:', str(error))
        if self.client_name != 'openssh':
            self.assertIn(str(self.server.known_hosts), str(error))

    def test_another_key_than_the_known_one_is_never_taken(self):
        lines = self.server.known_hosts.read_text().splitlines()
        other = self.server.folder / 'other'
        subprocess.run(['ssh-keygen', '-q', '-N', '', '-t', 'ed25519', '-f', other], check=True)
        name = lines[0].split()[0]
        self.server.known_hosts.write_text(
            f'{name} ' + ' '.join((other.with_suffix('.pub')).read_text().split()[:2]) + '\n')
        self.assertEqual(self.refused().data['code'], 'HOST_KEY_MISMATCH')

    def test_a_key_that_may_not_log_in_is_named(self):
        (self.server.folder / 'authorized_keys').write_text('')
        error = self.refused()
        self.assertEqual(error.data['code'], 'AUTH_FAILED')
        self.assertIn('publickey', str(error))

    def test_an_agent_that_is_not_there_is_told_with_the_path(self):
        error = self.refused(agent='no-such-agent')
        self.assertEqual(error.data['code'], 'AGENT_NOT_FOUND')
        self.assertIn('no-such-agent', str(error))
        self.assertIn(f'{self.server.home}/bin:', str(error))
        self.assertNames(str(error), 'install it | sandbox')

    def test_a_connection_that_is_lost_fails_what_is_under_way(self):
        client = self.far(outlives='never')
        session = self.open_session(client)
        request = client.start_prompt(session, 'terminal echo started > started; sleep 600')
        root = self.runtime(client, session)
        started = root / 'started'
        self.assertTrue(processes.wait_until(
            lambda: started.exists() and started.read_text() == 'started\n', SECONDS))
        self.server.kill_connections()
        with self.assertRaises(RpcError) as caught:
            client.answer(request, seconds=SECONDS)
        self.assertIn(caught.exception.data['code'],
                      ('LINK_LOST', 'SANDBOX_UNAVAILABLE', 'AGENT_EXITED'))
        self.end(client)
        self.assertEqual(self.tree(), {'started': 'started\n'})
        self.assertEqual([record['state'] for record in self.records()], ['stopped'])

    def test_check_looks_for_no_agent_here(self):
        path = self.dir / 'config-check'
        path.write_text('[profile "far"]\n\tbackend = ssh\n\thost = box\n')
        done = subprocess.run([case.BROKER, 'check', '--config', str(path), '--profile', 'far',
                               '--', 'no-such-agent'], env=self.environment(), text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNames(done.stdout, 'looked for | sandbox')
        self.assertIn('host                "box"', done.stdout)

    def test_check_says_what_the_host_resolves_to(self):
        path = self.dir / 'config-check'
        path.write_text(f'[profile "far"]\n\tbackend = ssh\n\thost = box\n'
                        f'\tssh-config = {self.ssh_config}\n\tuser = kim\n')
        done = subprocess.run([case.BROKER, 'check', '--config', str(path), '--profile', 'far',
                               '--', 'no-such-agent'], env=self.environment(), text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        resolved = done.stdout.partition('\nresolved\n')[2]
        for name, value in (('host', '127.0.0.1'), ('port', self.server.port), ('user', 'kim'),
                            ('ssh-client', 'auto'), ('identity-agent', 'none')):
            self.assertRegex(resolved, rf'(?m)^  {name} +"{value}"$')
        self.assertRegex(resolved, rf'(?m)^  identity-file +"{self.server.folder}/id"$')
        self.assertRegex(resolved, rf'(?m)^  known-hosts +"{self.server.folder}/known_hosts"$')

    def test_check_says_what_ssh_does_not_understand(self):
        path = self.dir / 'config-check'
        (self.dir / 'ssh_config').write_text('NoSuchKeyword yes\n')
        path.write_text(f'[profile "far"]\n\tbackend = ssh\n\thost = box\n'
                        f'\tssh-config = {self.dir}/ssh_config\n')
        done = subprocess.run([case.BROKER, 'check', '--config', str(path), '--profile', 'far',
                               '--', 'no-such-agent'], env=self.environment(), text=True,
                              capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('nosuchkeyword', done.stderr.lower())


if __name__ == '__main__':
    case.main()
