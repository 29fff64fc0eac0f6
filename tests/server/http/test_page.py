# SPDX-License-Identifier: Apache-2.0
"""The page's files, and nothing else, are served."""

from importlib import resources
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.server.http.clients import client_of
from tests.server.query.fakes import FakeStore


@pytest.fixture
def given(tmp_path: Path) -> FlaskClient:
    folder = tmp_path / "web"
    (folder / "core").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "core" / "tree.js").write_text("export const a = 1;")
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "__init__.py").write_text("")
    (folder / ".hidden.js").write_text("")
    (tmp_path / "secret.js").write_text("secret")
    (folder / "link.js").mkdir()
    return client_of(FakeStore(), folder)


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/compare", "/deploys", "/hosts", "/symbols", "/service/checkout", "/service/a%2Fb", "/service/a/b"]
)
def test_every_view_is_the_same_page(given: FlaskClient, path: str) -> None:
    response = given.get(path)
    assert (response.status_code, response.mimetype, response.text) == (200, "text/html", "<!doctype html><title>page</title>")


def test_files_have_their_types(given: FlaskClient) -> None:
    assert given.get("/assets/core/tree.js").mimetype == "text/javascript"
    assert given.get("/assets/icon.svg").mimetype == "image/svg+xml"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.js", "..%2fsecret.js", "%2e%2e/secret.js", "core/../../secret.js", "/etc/passwd", "__init__.py", ".hidden.js",
        "core", "core/", "link.js", "nothing.js", "a%00.js", "core\\tree.js", "x" * 5000 + ".js", "index.html/", "１２.js",
    ],
)  # fmt: skip
def test_nothing_else_is_served(given: FlaskClient, path: str) -> None:
    response = given.get(f"/assets/{path}")
    assert response.status_code == 404
    assert "secret" not in response.text.replace("secret.js", "")


def test_an_unchanged_file_is_not_sent_again(given: FlaskClient) -> None:
    first = given.get("/assets/core/tree.js")
    again = given.get("/assets/core/tree.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    assert first.headers["Cache-Control"] == "no-cache"


def test_the_packaged_page_is_there() -> None:
    assert resources.files("server.web").joinpath("index.html").is_file()
