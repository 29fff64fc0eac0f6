# SPDX-License-Identifier: Apache-2.0
"""Files sent to a server by the command: once for each build id, over breaks, and nothing that can name nothing."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from server.cli import symbol_upload
from server.cli.ask import Api
from server.cli.main import main
from server.cli.symbol_upload import Uploader, candidates
from server.errors import BadRequest, Overloaded, ServerError
from server.symbols.build_result import Quality
from tests.server.symbols.programs import compile_program, describe, run_tool
from tests.support.servers import serving

SOURCE = "int main(void) { return 7; }"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that each test sends other files to."""
    with serving(tmp_path_factory.mktemp("server"), "--no-local-files") as server:
        yield f"http://{server.http}"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["symbols", *arguments])


def test_directory_is_sent_once(tmp_path: Path, url: str) -> None:
    files = tmp_path / "files"
    (files / "deep").mkdir(parents=True)
    whole = compile_program(SOURCE, files / "deep/app", "-g")
    (files / "deep/app.c").rename(tmp_path / "app.c")
    shutil.copy(whole, files / "same")
    run_tool("objcopy", "--strip-all", whole, files / "stripped")
    compile_program(SOURCE, files / "other", "-Wl,--build-id=0x0102030405060708")
    (files / "README").write_text("no ELF file")
    (files / "link").symlink_to(whole)
    done = run("upload", str(files), "--server", url)
    assert done.exit_code == 0, done.output
    lines = [line.split(None, 2) for line in done.output.splitlines()]
    assert [line[0] for line in lines] == ["sent", "known", "sent", "known", "2"]
    assert lines[0][1] == describe(whole).build_id.hex()[:16]
    assert done.output.splitlines()[-1] == "2 sent, 2 known already, 0 refused"
    again = run("upload", str(files), "--server", url)
    assert again.output.splitlines()[-1] == "0 sent, 4 known already, 0 refused"


def test_file_that_can_name_nothing(tmp_path: Path, url: str) -> None:
    text, missing = tmp_path / "text", tmp_path / "missing"
    text.write_text("no ELF file")
    done = run("upload", str(text), "--server", url)
    assert done.exit_code == 1
    assert done.output.strip() == f"Error: {text} cannot be sent: starts with 6e 6f 20 45 4c 46 20 66: not an ELF file"
    assert run("upload", str(missing), "--server", url).exit_code == 2
    assert "no answer from" in run("upload", str(compile_program(SOURCE, tmp_path / "p")), "--server", "127.0.0.1:1").output


def test_list_of_a_server_without_profiles(url: str) -> None:
    assert run("--server", url).output == "no binary ran in this range\n"
    assert json.loads(run("--server", url, "--format", "json").output)["binaries"] == []
    assert "expected" in run("--server", url, "--query", "cpu{x").output


class BrokenApi(Api):
    """A server whose line breaks at every second piece, and that takes part of a piece only."""

    def __init__(self, failures: int) -> None:
        super().__init__("http://fake")
        object.__setattr__(self, "received", bytearray())
        object.__setattr__(self, "failures", failures)
        object.__setattr__(self, "puts", 0)

    received: bytearray
    failures: int
    puts: int

    def get_json(self, path: str, **parameters: str) -> dict[str, Any]:
        return {"held": "empty"} if parameters else {"received": len(self.received)}

    def put(self, path: str, data: bytes, content_range: str) -> dict[str, Any]:
        object.__setattr__(self, "puts", self.puts + 1)
        if self.puts <= self.failures:
            raise Overloaded("busy") if self.puts % 2 else ServerError("the line broke")
        start, size = int(content_range.split(" ")[1].split("-", maxsplit=1)[0]), int(content_range.split("/")[1])
        if start == len(self.received):
            self.received.extend(data[:700])
        return {"done": len(self.received) == size, "received": len(self.received), "binaries": 1}


def test_breaks_are_gone_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbol_upload, "PIECE_BYTES", 5000)
    program = compile_program(SOURCE, tmp_path / "app")
    api, said, told, slept = BrokenApi(4), list[str](), list[float](), list[float]()
    tally = Uploader(api, said.append, lambda _, share: told.append(share), slept.append).send_all([program])
    assert (tally.sent, bytes(api.received)) == (1, program.read_bytes())
    assert (len(slept), told == sorted(told), said[0].endswith("(names what runs)")) == (4, True, True)


def test_server_that_stays_away_is_told_with_what_to_do(tmp_path: Path) -> None:
    program = compile_program(SOURCE, tmp_path / "app")
    with pytest.raises(ServerError, match="run the command again: what is there already is not sent twice"):
        Uploader(BrokenApi(99), lambda _: None, lambda *_: None, lambda _: None).send_all([program])


def test_candidates(tmp_path: Path) -> None:
    program = compile_program(SOURCE, tmp_path / "app", "-g", "-Wl,--build-id=none")
    [found] = candidates(program)
    assert (found.build_id, found.quality) == ("", Quality.DWARF)
    run_tool("objcopy", "--only-keep-debug", program)
    with pytest.raises(BadRequest, match="neither a build id nor code"):
        list(candidates(program))


def test_split_files_are_sent_after_the_program_that_lacks_them(tmp_path: Path, url: str) -> None:
    made = compile_program(SOURCE, tmp_path / "app.o", "-c", "-g", "-gsplit-dwarf")
    (tmp_path / "app.c").unlink()
    run_tool("gcc", "-o", tmp_path / "app", made)
    made.unlink()
    done = run("upload", str(tmp_path), "--server", url)
    lines = [line.split() for line in done.output.splitlines()]
    assert [(line[0], Path(line[-5]).name) for line in lines[:-1]] == [("sent", "app"), ("sent", "app.dwo")]
    assert done.output.splitlines()[-1] == "2 sent, 0 known already, 0 refused"
