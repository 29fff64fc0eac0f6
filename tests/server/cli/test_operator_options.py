# SPDX-License-Identifier: Apache-2.0
"""Options for frames become the parameters that the API knows, and nothing that was not said."""

import click
from click.testing import CliRunner

from server.cli.operator_options import operator_parameters, with_operators
from server.http.parameters import OPERATORS


def asked(*arguments: str, unit: str = "") -> dict[str, str]:
    seen: dict[str, object] = {}

    @click.command()
    @with_operators
    def command(**given: object) -> None:
        seen.update(given)

    done = CliRunner().invoke(command, list(arguments))
    assert done.exit_code == 0, done.output
    return operator_parameters(seen, unit)


def test_nothing_said_asks_for_nothing() -> None:
    assert asked() == {}


def test_all_of_them_are_parameters_of_the_api() -> None:
    given = asked(
        "--focus", "=main", "--ignore", "~^x", "--callers", "a", "--callees", "b", "--group", "host", "--hide-kernel", "--collapse",
        "--invert", unit="package",
    )  # fmt: skip
    assert given == {
        "focus": "=main", "ignore": "~^x", "callers": "a", "callees": "b", "group": "host", "hide_kernel": "1", "collapse": "1",
        "invert": "1", "by": "package",
    }  # fmt: skip
    assert set(given) == {*OPERATORS, "group"}
