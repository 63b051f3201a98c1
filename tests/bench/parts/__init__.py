# SPDX-License-Identifier: MIT
"""The parts of the benchmark: each module has NAME, and run(bench) that returns a Result."""
