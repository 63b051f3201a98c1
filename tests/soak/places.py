# SPDX-License-Identifier: MIT
"""
The providers of a soak: the profile of each, and the processes of its sandbox that run and may be
killed.
"""

import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / 'integration'), str(TESTS / 'support/daytona')]

import processes  # noqa: E402
import sshd  # noqa: E402
import stand_in  # noqa: E402

# Names of processes here that are the broker's own, or that it starts first.
OWN = ('acp-guard', 'acp-broker', 'scripted-agent')


RUN = re.compile(rb'ACP_BROKER_RUN=[0-9a-f]{32}')


class Place:
    """A sandbox on this machine. `agents` are the running ones, in the order of their start."""

    victims = ('broker', 'guard', 'agent', 'child')

    def __init__(self, **keys):
        self.own_keys = keys
        self.is_kept = keys.get('persistence') != 'transient'

    def start(self):
        """Starts the services that it needs besides the broker."""

    def stop(self):
        """Ends what start() has started."""

    def keys(self):
        return self.own_keys

    def environment(self):
        return {}

    def outside(self):
        """
        The running processes without the broker's mark; the first is the one that ends the others.
        """
        return []

    def folders(self):
        """Homes other than the broker's in which left files are looked for."""
        return []

    def guard(self, broker, agents):
        above = processes.parent_of(agents[-1]) if agents else 0
        return above if processes.name_of(above) == 'acp-guard' else 0

    def child(self, broker, agents):
        return max((pid for pid in processes.descendants(broker)
                    if processes.name_of(pid) not in OWN), default=0)

    def kill(self, what, broker, agents):
        """Kills a process; returns False if there is no such process now."""
        pid = {'broker': lambda: broker, 'guard': lambda: self.guard(broker, agents),
               'agent': lambda: agents[-1] if agents else 0,
               'child': lambda: self.child(broker, agents),
               'link': lambda: self.link(broker), 'ssh': lambda: self.ssh(broker)}[what]()
        if not pid or not processes.is_running(pid):
            return False
        processes.kill(pid)
        return True

    def link(self, broker):
        return 0

    def ssh(self, broker):
        """The `ssh` program that holds the connection, if there is one."""
        return max((pid for pid in processes.descendants(broker)
                    if processes.name_of(pid) == 'ssh'), default=0)

    def unlisted(self, listed):
        """The existing sandboxes that the broker does not list."""
        return []


class Remote(Place):
    """A sandbox whose processes have a home of their own."""

    victims = (*Place.victims, 'link')

    def guard(self, broker, agents):
        return next(iter(self.outside()), 0)

    def child(self, broker, agents):
        return max(set(self.outside()[1:]) - set(agents), default=0)


class Host(Remote):
    """A real sshd on loopback. The victim "link" is sshd's child for this connection."""

    @property
    def victims(self):
        uses_ssh = self.own_keys['ssh-client'] == 'openssh'
        return (*Remote.victims, 'ssh') if uses_ssh else Remote.victims

    def start(self):
        self.sshd = sshd.Sshd()
        self.sshd.__enter__()
        self.runs = set()  # the tokens of all runs so far

    def stop(self):
        self.sshd.stop()

    def keys(self):
        return {'backend': 'ssh', 'host': 'box', 'ssh-config': self.sshd.config,
                'channel-timeout': '30s', 'link-grace': '20s', **self.own_keys}

    def outside(self):
        """
        Finds processes by their home. What the broker started may have another home, but has the
        run's token.
        """
        home, found = f'HOME={self.sshd.home}'.encode(), []
        for pid in sorted(processes.all_pids()):
            text = processes.read_file(f'/proc/{pid}/environ')
            token = RUN.search(text)
            if home in text and token:
                self.runs.add(token.group())
            if (home in text or token and token.group() in self.runs) and processes.is_running(pid):
                found.append(pid)
        return found

    def folders(self):
        return [self.sshd.folder]

    def link(self, broker):
        return max(self.sshd.connections(), default=0)


class Cloud(Remote):
    """Daytona's stand-in; the link is every connection to its gateway."""

    def start(self):
        self.daytona = stand_in.StandIn()
        self.daytona.__enter__()

    def stop(self):
        self.daytona.__exit__()

    def keys(self):
        return {'backend': 'daytona', 'api-url': self.daytona.api, 'connect-timeout': '20s',
                'auth-timeout': '20s', 'channel-timeout': '30s', 'link-grace': '20s',
                'api-timeout': '30s', 'create-timeout': '60s', 'stop-timeout': '30s',
                **self.own_keys}

    def environment(self):
        return {'DAYTONA_API_KEY': self.daytona.key}

    def outside(self):
        return self.daytona.pids()

    def boxes(self):
        return [box for box in self.daytona.sandboxes() if box['state'] != 'destroying']

    def folders(self):
        return [pathlib.Path(box['folder']) for box in self.boxes()]

    def kill(self, what, broker, agents):
        if what != 'link':
            return super().kill(what, broker, agents)
        there = bool(self.daytona.connections())
        self.daytona.drop_connections()
        return there

    def unlisted(self, listed):
        return [box['name'] for box in self.boxes() if box['name'] not in listed]


PLACES = {
    'local': lambda: Place(checkpoints='true', toolhost='broker'),
    'copy': lambda: Place(isolation='copy'),
    'copy-rsync': lambda: Place(isolation='copy', transport='rsync'),
    'ssh': lambda: Host(**{'ssh-client': 'libssh2'}),
    'ssh-openssh': lambda: Host(**{'ssh-client': 'openssh'}),
    'ssh-rsync': lambda: Host(**{'ssh-client': 'libssh2'}, transport='rsync'),
    'ssh-transient': lambda: Host(**{'ssh-client': 'libssh2'}, persistence='transient'),
    'daytona': lambda: Cloud(persistence='reuse'),
    'daytona-transient': lambda: Cloud(persistence='transient'),
}


def that_can_be_started():
    missing = {'ssh': not sshd.can_be_started(), 'daytona': not stand_in.can_be_started()}
    return [name for name in PLACES if not missing.get(name.split('-')[0])]
