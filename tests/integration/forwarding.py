# SPDX-License-Identifier: MIT
"""For tests of `forward`: a server for the cell, and what reaches it from here."""

import errno
import socket

import processes

# Listens on each ADDRESS PORT pair. Sends the port's number and then echoes all bytes of the peer.
SERVE = r"""
import socket, sys, threading
def echo(client, port):
    with client:
        client.sendall(b'%d ' % port)
        while piece := client.recv(65536):
            client.sendall(piece)
def serve(address, port):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family, backlog=200)
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0], port), daemon=True).start()
words = sys.argv[1:]
for address, port in zip(words[::2], words[1::2]):
    threading.Thread(target=serve, args=(address, int(port)), daemon=True).start()
threading.Event().wait()
"""


def listens_on_ip6(port=0):
    try:
        socket.create_server(('::1', port), family=socket.AF_INET6).close()
        return True
    except OSError:
        return False


HAS_IP6 = listens_on_ip6()


def free_port():
    """A port that nobody uses, on both addresses of "localhost"."""
    while True:
        with socket.create_server(('127.0.0.1', 0)) as four:
            port = four.getsockname()[1]
            if not HAS_IP6 or listens_on_ip6(port):
                return port


def tell(port, said=b'hello', address='127.0.0.1'):
    """The answer of the server behind the port; None if the connection was refused or reset."""
    try:
        with socket.create_connection((address, port), 60) as client:
            client.settimeout(60)
            client.sendall(said)
            client.shutdown(socket.SHUT_WR)
            answer = b''
            while piece := client.recv(65536):
                answer += piece
            return answer
    except OSError as error:
        if isinstance(error, ConnectionError) or error.errno == errno.ENOTCONN:
            return None
        raise


def forwarders(broker):
    """The processes below a broker that forward ports."""
    return [pid for pid in processes.descendants(broker)
            if b'--acp-broker-forward' in processes.read_file(f'/proc/{pid}/cmdline')
            and b'--acp-broker-forward' not in processes.read_file(
                f'/proc/{processes.parent_of(pid)}/cmdline')]
