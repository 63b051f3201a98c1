#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The sessions and failures of test_ssh.py, with the `ssh` program as the client."""

import case
import test_ssh


class Sessions(test_ssh.Sessions):
    client_name = 'openssh'


class Failures(test_ssh.Failures):
    client_name = 'openssh'


if __name__ == '__main__':
    case.main()
