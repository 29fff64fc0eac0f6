# SPDX-License-Identifier: Apache-2.0
"""Options for frames become the parameters that the API knows, and nothing that was not said."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from server.cli import main as commands
from server.cli.ask import Api
from server.cli.operator_options import operator_parameters, with_operators
from server.http.parameters import OPERATORS
from tests.server.http.clients import client_of
from tests.server.query.fakes import START_S
from tests.support.operator_cases import CASES, NEW, OLD, Case, operator_store

RANGE = ["--from", str(START_S), "--until", str(START_S + 60), "--format", "folded"]


class AppApi(Api):
    """An API that an app in this process answers."""

    def get(self, path: str, **parameters: str) -> bytes:
        answer = client_of(operator_store()).get(f"/api/v1/{path}", query_string=parameters)
        assert answer.status_code == 200, answer.text
        body: bytes = answer.data
        return body


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: "&".join(case.parameters))
def test_each_operator_is_an_option_of_query_and_diff(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "api_at", AppApi)
    no_threads = [] if "group" in case.parameters else ["--group", "none"]
    for command, folded in ((["query", "cpu{}"], case.graph), (["diff", OLD, NEW], case.diff)):
        done = CliRunner().invoke(commands.main, [*command, *RANGE, *no_threads, *case.options])
        assert (done.exit_code, done.output) == (0, folded)


def test_files_have_threads_and_no_other_label(tmp_path: Path) -> None:
    file = tmp_path / "a.folded"
    file.write_text("w;main 7\n")
    done = CliRunner().invoke(commands.main, ["diff", str(file), str(file), "--group", "host"])
    assert done.exit_code != 0
    assert "stacks of a file have a thread and no 'host'" in done.output
    assert CliRunner().invoke(commands.main, ["diff", str(file), str(file), "--group", "thread"]).exit_code == 0


@pytest.mark.parametrize("wanted", ["folded", "json"])
def test_what_is_added_up_may_be_another_column(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str] = []

    class Listening(AppApi):
        def get(self, path: str, **parameters: str) -> bytes:
            asked_for.append(parameters.get("column", ""))
            return b"{}"

    monkeypatch.setattr(commands, "api_at", Listening)
    done = CliRunner().invoke(commands.main, ["query", "offcpu{}", "--column", "uninterruptible_ns", "--format", wanted])
    assert (done.exit_code, asked_for) == (0, ["uninterruptible_ns"])
