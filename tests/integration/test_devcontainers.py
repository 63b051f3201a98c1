#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`devcontainer = auto`: the workspace's devcontainer.json names the image or the Dockerfile."""

import json
import shutil
import socket

from case import main
from containers import IMAGE, Containers
from forwarding import free_port

MORE = '''
	// Nothing of this happens.
	"initializeCommand": "touch {dir}/touched",
	"postAttachCommand": ["touch", "{dir}/touched"],
	"runArgs": ["--privileged", "--volume", "{dir}:/here"],
	"mounts": ["source={dir},target=/here,type=bind"],
	"containerEnv": {{"HOST_HOME": "${{localEnv:HOME}}"}},
	"features": {{}}, /* and nothing of this */
'''


class Devcontainers(Containers):
    def setUp(self):
        super().setUp()
        (self.work / '.devcontainer').mkdir()
        self.source = self.work / '.devcontainer/devcontainer.json'

    def config(self, deadlines=True, policy=None, backend='container', **keys):
        return super().config(deadlines, policy, backend, **{'devcontainer': 'auto', **keys})

    def write(self, *lines):
        text = '\n'.join(lines) + MORE.format(dir=self.dir)
        self.source.write_text('{' + text + '}\n')

    def write_only(self, *lines):
        self.source.write_text('{' + '\n'.join(lines) + '}')

    def answered(self, **keys):
        client = self.broker(options=self.config(**keys))
        return client, client.initialize()

    def said(self, client, line):
        session = client.new_session(self.work)
        client.prompt(session, f'terminal {line}')
        return client.wait_text('terminal/output ->')

    def refusal(self):
        client = self.broker(options=self.config())
        error = client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}})).value['error']
        client.finish()
        self.assertEqual(self.containers(), [])
        return error['message']


class Accepted(Devcontainers):
    def test_an_image_is_used_and_the_rest_is_named_and_not_done(self):
        self.write(f'"image": "{IMAGE}",')
        client, answer = self.answered()
        warning, = answer['_meta']['broker']['warnings']
        self.assertNames(warning, f'{self.source} | initializeCommand | postAttachCommand | '
                         'runArgs | mounts.0 | containerEnv.HOST_HOME | features')
        said = self.said(client, 'echo "<$HOST_HOME>"; ls -d /here')
        self.assertIn('<>', said)
        self.assertIn('/here', said)
        self.assertEqual(self.seen('{{.HostConfig.Privileged}}'), 'false')
        self.assertNotIn(':/here', self.seen('{{.HostConfig.Binds}}'))
        self.assertFalse((self.dir / 'touched').exists())
        self.end(client)

    def test_a_dockerfile_is_built_with_its_context(self):
        box = self.work / '.devcontainer/box'
        box.mkdir()
        (box / 'Dockerfile').write_text(f'FROM {IMAGE}\nCOPY note /note\n')
        (self.work / 'note').write_text('first')
        self.write('"build": {"dockerfile": "box/Dockerfile", "context": "..",'
                   ' "cacheFrom": "x",},')
        client, answer = self.answered()
        self.assertNames(answer['_meta']['broker']['warnings'][0], 'build.cacheFrom')
        self.assertIn('first', self.said(client, 'cat /note'))
        self.end(client)

    def test_a_build_gets_its_arguments_and_its_stage(self):
        (self.source.parent / 'one').write_text('it is one')
        (self.source.parent / 'two').write_text('it is two')
        (self.source.parent / 'Dockerfile').write_text(
            f'FROM {IMAGE} AS dev\nARG NAME\nCOPY $NAME /name\nFROM {IMAGE}\nCOPY none /none\n')
        for name in ('one', 'two'):
            self.write('"build": {"dockerfile": "Dockerfile", "target": "dev",'
                       f' "args": {{"NAME": "{name}"}}}},')
            client, _ = self.answered()
            self.assertIn(f'it is {name}', self.said(client, 'cat /name'))
            self.end(client)

    def test_the_user_the_variables_and_the_volumes_are_those_of_the_file(self):
        home = self.source.parent / 'home'
        home.mkdir()
        (home / 'note').write_text('')
        (self.source.parent / 'passwd').write_text('kim:x:4711:4711::/home/kim:/bin/sh\n')
        (self.source.parent / 'Dockerfile').write_text(
            f'FROM {IMAGE}\nCOPY passwd /etc/passwd\nCOPY --chown=4711:4711 home /home/kim\n')
        self.write_only('"build": {"dockerfile": "Dockerfile"}, "remoteUser": "kim",',
                        '"remoteEnv": {"WITH": "50% ${localWorkspaceFolder}"},',
                        '"mounts": ["source=other,target=/home/kim,type=volume"]')
        client, _ = self.answered()
        said = self.said(client, 'echo "$(id -u) $WITH $(grep -c " /home/kim " /proc/mounts)"')
        self.assertIn(f'4711 50% {self.work} 1', said)
        self.assertEqual(self.seen('{{range .Mounts}}{{.Type}}:{{.Destination}} {{end}}')
                         .split().count('volume:/home/kim'), 1)
        self.assertNotIn('other', self.podman('volume', 'ls').stdout)
        self.end(client)

    def test_other_variables_make_another_container(self):
        for value in ('one', 'two'):
            self.write_only(f'"image": "{IMAGE}", "remoteEnv": {{"A": "{value}"}}')
            client, _ = self.answered()
            self.assertIn(f'<{value}>', self.said(client, 'echo "<$A>"'))
            self.end(client)
        self.assertEqual(len(self.containers()), 2)

    def test_another_folder_with_the_same_dockerfile_has_another_image(self):
        for name in ('one', 'two'):
            self.work = self.dir / name
            self.work.mkdir()
            self.source = self.work / '.devcontainer.json'
            (self.work / 'Dockerfile').write_text(f'FROM {IMAGE}\nCOPY name /name\n')
            (self.work / 'name').write_text(f'it is {name}')
            self.write('"build": {"dockerfile": "Dockerfile"},')
            client = self.broker(options=self.config(), cwd=self.work)
            client.initialize()
            self.assertIn(f'it is {name}', self.said(client, 'cat /name'))
            self.end(client)

    def test_the_file_may_be_in_the_workspace_itself(self):
        self.source.parent.rmdir()
        self.source = self.work / '.devcontainer.json'
        self.write(f'"image": "{IMAGE}",')
        client, _ = self.answered()
        self.assertIn('here', self.said(client, 'echo here'))
        self.end(client)


class Commands(Devcontainers):
    """They run in the container, in the workspace, once for each container."""

    def ran(self):
        path = self.work / 'ran'
        return path.read_text().splitlines() if path.exists() else []

    def write_commands(self, **members):
        self.write_only(f'"image": "{IMAGE}"', *(
            f', "{name}": {json.dumps(value)}' for name, value in members.items()))

    def play(self, **keys):
        client, _ = self.answered(**keys)
        session = client.new_session(self.work)
        client.prompt(session, 'terminal echo turn >> ran')
        self.end(client)

    def test_they_run_once_in_the_order_of_their_kinds_before_the_first_turn(self):
        self.write_commands(
            postCreateCommand={'a': ['sh', '-c', 'echo "$0" >> "$1"', 'it is',
                                     '${containerWorkspaceFolder}/ran'],
                               'b': 'echo "${containerWorkspaceFolderBasename}" >> ran'},
            onCreateCommand='test "$PWD" = "$containerWorkspaceFolder" && echo first >> ran')
        self.play()
        self.assertEqual(self.ran(), ['first', 'it is', 'work', 'turn'])
        self.play()
        self.assertEqual(self.ran(), ['first', 'it is', 'work', 'turn', 'turn'])
        self.assertEqual(len(self.containers()), 1)

    def test_they_get_no_variable_of_the_profile(self):
        """The agent gets it, and the programs of the image could take it there."""
        self.write_commands(postCreateCommand='echo "<$OWN>" >> ran')
        client, _ = self.answered(env='OWN=mine')
        session = client.new_session(self.work)
        client.prompt(session, 'env OWN')
        self.assertIn('mine', client.wait_text('OWN='))
        client.prompt(session, 'terminal true')
        self.end(client)
        self.assertEqual(self.ran(), ['<>'])

    def test_one_that_fails_fails_the_session_with_what_it_said(self):
        self.write_commands(postCreateCommand={'it': 'echo some words; exit 7'})
        client, _ = self.answered()
        error = self.failure(client.response(client.start('session/new', {
            'cwd': str(self.work), 'mcpServers': []})), 'SETUP_FAILED')
        self.assertNames(error['message'], f'{self.source} | postCreateCommand.it | status 7 | '
                         'some words')
        self.write_commands(postCreateCommand='true')
        self.end(client)
        self.play()
        self.assertEqual(self.ran(), ['turn'])

    def test_one_that_takes_too_long_is_ended(self):
        self.write_commands(postCreateCommand='sleep 600')
        client, _ = self.answered(**{'setup-timeout': '2s'})
        error = self.failure(client.response(client.start('session/new', {
            'cwd': str(self.work), 'mcpServers': []})), 'TIMEOUT_EXCEEDED')
        self.assertNames(error['message'], f'{self.source} | postCreateCommand')
        self.end(client)

    def test_a_shown_workspace_is_where_they_run(self):
        self.write_commands(postCreateCommand='pwd >> ran')
        self.play(mount='same-path')
        self.assertEqual(self.ran(), [str(self.work), 'turn'])


class Ports(Devcontainers):
    def test_a_port_is_open_here_only_if_the_user_says_so(self):
        port = free_port()
        self.write_only(f'"image": "{IMAGE}", "forwardPorts": [{port}, "db:5432"]')
        client, answer = self.answered()
        self.assertNames(answer['_meta']['broker']['warnings'][0], 'forwardPorts')
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(('127.0.0.1', port)).close()
        self.end(client)
        client, answer = self.answered(**{'devcontainer-ports': 'true'})
        self.assertNames(answer['_meta']['broker']['warnings'][0], 'forwardPorts.1')
        socket.create_connection(('127.0.0.1', port)).close()
        self.end(client)


class Hostile(Devcontainers):
    def test_no_word_of_the_engine_comes_from_this_machine_or_gives_more_rights(self):
        (self.source.parent / 'Dockerfile').write_text(f'FROM {IMAGE}\n')
        self.write_only('"build": {"dockerfile": "Dockerfile", "options": ["--volume=/:/host"],',
                        '  "args": {"A1": "${localEnv:HOME}", "A2": "kept"}},',
                        '"containerEnv": {"B1": "${localEnv:HOME}", "HOME*": "", "B2": "kept"},',
                        '"remoteEnv": {"C1": "x${localEnv:NOTHING:${localEnv:HOME}}"},',
                        '"mounts": ["source=${localEnv:HOME},target=/host,type=bind",',
                        '  "source=/,target=/host,type=volume,volume-opt=device=/",',
                        '  "source=/var/run/docker.sock,target=/var/run/docker.sock,type=bind"],',
                        '"workspaceMount": "source=/,target=/host,type=bind",',
                        '"runArgs": ["--network=host", "--device=/dev/kvm", "--pid=host"],',
                        '"privileged": true, "capAdd": ["ALL"], "init": true,',
                        '"securityOpt": ["seccomp=unconfined"], "appPort": [3000],',
                        '"forwardPorts": [3000], "initializeCommand": "touch touched"')
        log = self.dir / 'words'
        client = self.with_podman(f'printf "%s\\n" "$@" >>{log}')
        client.initialize()
        self.said(client, 'true')
        self.end(client)
        words = log.read_text().splitlines()
        self.assertEqual([word for word in words if word[:3] in ('A1=', 'B1=', 'C1=')], [])
        self.assertEqual([word for word in words if word in ('A2=kept', 'B2=kept')],
                         ['A2=kept', 'B2=kept'])
        for hostile in ('/host', 'docker.sock', 'privileged', 'cap-add', 'network', 'device',
                        'pid=', 'publish', 'security-opt', 'HOME', 'init'):
            self.assertEqual([word for word in words if hostile in word], [])
        self.assertEqual([*self.dir.rglob('touched')], [])


class Refused(Devcontainers):
    def test_a_build_outside_of_the_workspace(self):
        for build in ('"dockerfile": "../../Dockerfile"',
                      '"dockerfile": "Dockerfile", "context": "../.."',
                      '"dockerfile": "link"'):
            (self.dir / 'Dockerfile').write_text(f'FROM {IMAGE}\n')
            (self.source.parent / 'Dockerfile').write_text(f'FROM {IMAGE}\n')
            link = self.source.parent / 'link'
            if not link.is_symlink():
                link.symlink_to(self.dir / 'Dockerfile')
            self.write(f'"build": {{{build}}},')
            self.assertNames(self.refusal(), 'devcontainer = auto | .devcontainer')

    def test_an_image_that_is_no_image_of_a_registry(self):
        for image in ('dir:/tmp', 'oci:box', 'docker-archive:box.tar', 'tarball:x', 'a:/b',
                      'docker-daemon:x:1', 'localhost/acp-broker:1', 'acp-broker:1'):
            self.write(f'"image": "{image}",')
            self.assertNames(self.refusal(), f'{self.source} | image')

    def test_a_dockerfile_that_podman_gives_to_the_preprocessor(self):
        (self.source.parent / 'Dockerfile.in').write_text(f'FROM {IMAGE}\n')
        self.write('"build": {"dockerfile": "Dockerfile.in"},')
        self.assertNames(self.refusal(), f'{self.source.parent}/Dockerfile.in | ends in .in')

    def test_a_file_behind_a_link(self):
        shutil.rmtree(self.source.parent)
        (self.dir / 'other').mkdir()
        self.source.parent.symlink_to(self.dir / 'other')
        self.write(f'"image": "{IMAGE}",')
        self.assertNames(self.refusal(), f'{self.source}')

    def test_a_file_that_says_nothing_useful(self):
        for text, facts in (('[]', 'JSON object'), ('{"image": ', 'line 1'),
                            ('{"image": "--privileged"}', 'image'),
                            ('{"dockerComposeFile": "x.yml"}', 'dockerComposeFile')):
            self.source.write_text(text)
            self.assertNames(self.refusal(), f'{self.source} | {facts}')

    def test_a_workspace_without_such_a_file(self):
        message = self.refusal()
        self.assertNames(message, f'{self.work} | .devcontainer.json | '
                         '.devcontainer/devcontainer.json')

    def test_a_file_that_every_user_can_write(self):
        self.write(f'"image": "{IMAGE}",')
        self.source.chmod(0o666)
        self.assertNames(self.refusal(), f'{self.source} | chmod o-w')

    def test_a_folder_above_that_every_user_can_write(self):
        """Another user could put another file there at any time."""
        self.write(f'"image": "{IMAGE}",')
        for folder in (self.source.parent, self.work, self.dir):
            before = folder.stat().st_mode
            folder.chmod(before | 0o002)
            self.assertNames(self.refusal(), f'{folder} | chmod o-w')
            folder.chmod(before)

    def test_a_folder_between_the_workspace_and_the_dockerfile_that_every_user_can_write(self):
        box = self.work / 'open/box'
        box.mkdir(parents=True)
        (box / 'Dockerfile').write_text(f'FROM {IMAGE}\n')
        self.write('"build": {"dockerfile": "../open/box/Dockerfile", "context": "../open/box"},')
        box.parent.chmod(0o777)
        self.assertNames(self.refusal(), f'{box.parent} | chmod o-w')


if __name__ == '__main__':
    main()
