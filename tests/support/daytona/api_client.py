# SPDX-License-Identifier: MIT
"""Calls of the stand-in's API, and OpenSSH's client on its gateway, for tests of the stand-in."""

import http.client
import json
import subprocess
import urllib.parse

import processes

CALL_SECONDS = processes.PATIENCE


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = dict(response.headers)
        self.text = response.read().decode()
        self.body = json.loads(self.text) if self.text else None


class Api:
    def __init__(self, daytona, key=None):
        self.daytona, self.key = daytona, key or daytona.key

    def call(self, method, path, body=None, headers=None, text=None):
        """Sends a request with these values; `path` follows /api."""
        url = urllib.parse.urlsplit(self.daytona.api)
        connection = http.client.HTTPConnection(url.netloc, timeout=CALL_SECONDS)
        sent = {'Content-Type': 'application/json'}
        if self.key:
            sent['Authorization'] = f'Bearer {self.key}'
        data = text if body is None else json.dumps(body)
        try:
            connection.request(method, url.path + path, data, {**sent, **(headers or {})})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def ok(self, method, path, body=None):
        answer = self.call(method, path, body)
        if answer.status not in (200, 201):
            raise AssertionError(f'{method} {path}: {answer.status} {answer.text}')
        return answer.body

    def make(self, name, **asked):
        """Makes a sandbox, and waits until it is started and its sshd listens."""
        self.ok('POST', '/sandbox', {'name': name, **asked})
        made = self.reach(name, 'started')
        if not processes.wait_until(lambda: self.daytona.sandbox(name)['isListening']):
            raise AssertionError(f'the sshd of {name} does not listen')
        return made

    def reach(self, name, state):
        """Waits for a state; returns the sandbox."""
        seen = {}

        def is_there():
            seen.update(self.ok('GET', f'/sandbox/{name}'))
            return seen['state'] == state
        if not processes.wait_until(is_there):
            raise AssertionError(f'{name} is {seen["state"]}, not {state}')
        return seen

    def token(self, name, minutes=60):
        return self.ok('POST', f'/sandbox/{name}/ssh-access?expiresInMinutes={minutes}')['token']

    def ssh_argv(self, token, *words):
        return ['ssh', '-F', 'none', '-o', 'StrictHostKeyChecking=no', '-o',
                'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR', '-o', 'BatchMode=yes',
                '-p', str(self.daytona.ssh_port), f'{token}@{self.daytona.ssh_host}', *words]

    def ssh(self, name, command, token=None):
        """A client that runs a command in a sandbox, with pipes to all three."""
        return subprocess.Popen(self.ssh_argv(token or self.token(name), command),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
