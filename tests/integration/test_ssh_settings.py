#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What ssh's configuration, or the profile instead of it, says about a host: a real sshd."""

import getpass
import shutil

import case

from test_ssh import SECONDS, SshCase


class Settings(SshCase):
    # Passes the connection on and ends, as the proxy of systemd's configuration for ssh does.
    proxy = ('import socket, sys\n'
             'peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))\n'
             'socket.send_fds(socket.socket(fileno=1), [bytes(1)], [peer.fileno()])\n')

    path = None

    def environment(self):
        env = super().environment()
        return {**env, 'PATH': str(self.path)} if self.path else env

    def configure(self, *lines):
        text = self.server.config.read_text()
        self.server.config.write_text(text + ''.join(f'\t{line}\n' for line in lines))

    def works_by_the_program(self, because):
        client = self.far()
        session = self.open_session(client)
        client.prompt(session, 'terminal echo there', seconds=SECONDS)
        self.end(client)
        self.assertRegex(client.stderr, f'{because}.*using the ssh program')

    def test_names_of_files_are_below_the_brokers_folder(self):
        shutil.copy(self.server.key, self.work / 'key')
        shutil.copy(self.server.known_hosts, self.work / 'known')
        text = self.server.config.read_text().replace(str(self.server.key), 'key')
        (self.work / 'hosts').write_text(text.replace(str(self.server.known_hosts), 'known'))
        self.ssh_config = 'hosts'
        for self.client_name in ('libssh2', 'openssh'):
            with self.subTest(self.client_name):
                client = self.far(sync='none')
                client.prompt(self.open_session(client), 'terminal echo', seconds=SECONDS)
                self.end(client)

    def test_a_profile_says_all_where_there_is_no_ssh_program(self):
        (self.work / 'mine').write_text('from here\n')
        self.path = self.dir / 'bin'
        self.path.mkdir()
        for name in ('git', 'rsync'):
            (self.path / name).symlink_to(shutil.which(name))
        self.ssh_config = ''
        client = self.far(host='127.0.0.1', port=self.server.port, user=getpass.getuser(),
                          known_hosts=self.server.known_hosts, identity_file=self.server.key)
        session = self.open_session(client)
        client.prompt(session, 'terminal cp mine theirs', seconds=SECONDS)
        self.assertEqual((self.work / 'theirs').read_text(), 'from here\n')
        self.end(client)

    def test_a_proxy_that_passes_its_connection_is_left_to_the_program(self):
        script = self.dir / 'proxy.py'
        script.write_text(self.proxy)
        self.configure(f'ProxyCommand /usr/bin/python3 {script} %p', 'ProxyUseFdpass yes')
        self.works_by_the_program('ProxyUseFdpass yes')

    def test_an_address_of_ones_own_is_left_to_the_program(self):
        self.configure('BindAddress 127.0.0.2')
        self.works_by_the_program('BindAddress 127.0.0.2')
        self.assertIn('from 127.0.0.2', self.server.log())


if __name__ == '__main__':
    case.main()
