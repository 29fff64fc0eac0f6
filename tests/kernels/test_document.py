# SPDX-License-Identifier: Apache-2.0
"""A run replaces what the document says of its kernels and leaves the others."""

from dataclasses import replace

from tests.kernels.document import HEAD, document
from tests.kernels.results import Outcome, TestOutcome
from tests.kernels.test_verdict import run


def test_document_has_a_row_and_a_section_for_each_kernel() -> None:
    text = document("", [(run(), [])])
    assert text.startswith(HEAD)
    assert "| 6.1 | as expected | 1 | 1 | 0 | on | 2026-11-29 | 307 s |\n" in text
    assert "## Linux 6.1\n\nPackage `linux-image`, #1 SMP Debian 6.1.192-3, 2026-11-29 00:00 UTC.\n" in text
    assert "- collectors: cpu works\n- unwinding by tables: on\n- skipped: `t.py::test_b[7]`: needs a fish here\n" in text


def test_other_kernels_keep_what_was_said_and_series_sort_by_number() -> None:
    first = document("", [(replace(run(), series="6.12"), []), (replace(run(), series="5.10"), [])])
    both = document(first, [(run(), ["test_x failed"])])
    assert [line.split()[2] for line in both.splitlines() if line.startswith("## ")] == ["5.10", "6.1", "6.12"]
    assert "| 6.1 | FAILED |" in both and "- **not as expected**: test_x failed\n" in both
    again = document(both, [(run(), [])])
    assert "FAILED" not in again and "test_x" not in again
    assert document(again, []) == again


def test_words_of_a_failure_do_not_break_the_page() -> None:
    failed = run({"t.py::test_a": TestOutcome(Outcome.FAILED, "x")})
    text = document("", [(failed, ["a | b <script>\n\n## Linux 9.9\nmore"])])
    assert "- **not as expected**: a \\| b &lt;script> ## Linux 9.9 more\n" in text


def test_kernel_that_said_nothing_is_unknown() -> None:
    text = document("", [(run({}, probe=None, status=None), ["the guest did not come to its end in 307 s"])])
    assert "| 6.1 | FAILED | 0 | 0 | 0 | unknown | 2026-11-29 | 307 s |" in text
