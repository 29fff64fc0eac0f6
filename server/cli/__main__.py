# SPDX-License-Identifier: Apache-2.0
"""Entry of python -m server.cli, the same as the command."""

from server.cli.main import main

main()
