# SPDX-License-Identifier: MIT
"""What is left after the end of a stint, by kind; each kind must be empty."""

import fcntl
import json
import os

import processes
import sync_room

# Names that a stint itself, or the broker, keeps in the stint's folder.
KNOWN = {'work', 'home', 'config', 'pids', 'memory'}
RUN_FOLDER = 'acp-broker.' + 32 * '[0-9a-f]' + '*'


def count(stint):
    listed = [one['name'] for one in json.loads(
        stint.command('--profile', 'soak', 'sandboxes', 'list', '--json'))['sandboxes']] if hasattr(
            stint.place, 'boxes') else []
    processes.wait_until(lambda: not stint.running(), stint.left_seconds, 0.1)
    return {
        'processes': stint.running(),
        'lost edits': sorted(stint.missing(stint.work).items()),
        'parked edits': [
            *map(str, stint.work.rglob('*.acp-conflict')),
            *map(str, sync_room.parked_files(stint.state))],
        'open records': open_records(stint),
        'unlisted sandboxes': stint.place.unlisted(listed),
        'temporary files': temporary(stint),
        'held locks': held(stint.state),
    }


def open_records(stint):
    sessions = json.loads(stint.command('sessions', 'list', '--json'))['sessions']
    return [(one['id'], one['state'], one['isHeld']) for one in sessions
            if one['isHeld'] or one['state'] != 'stopped']


def temporary(stint):
    own = [path for path in stint.dir.iterdir() if path.name not in KNOWN]
    folders = [stint.work, stint.state, *stint.place.folders()]
    return [str(path) for path in own] + [
        described(path) for folder in folders for pattern in ('.acp-broker-*', RUN_FOLDER, '*.new')
        for path in folder.rglob(pattern)]


def described(path):
    """The path, with the names in it, which show how far its end has come."""
    inside = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else ''
    return f'{path} {inside}'.strip()


def held(folder):
    """Lock files that some process still holds."""
    found = []
    for path in folder.rglob('*.lock'):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append(str(path))
        finally:
            os.close(fd)
    return found
