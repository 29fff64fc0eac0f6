# SPDX-License-Identifier: Apache-2.0
"""Of everything apt lists, the newest plain image of each supported series is taken."""

from tests.kernels.offers import newest_by_series, series_key

LISTED = [
    "linux-image-4.19.0-27-amd64",
    "linux-image-5.10.0-34-amd64",
    "linux-image-5.10.0-35-amd64",
    "linux-image-6.1.0-9-amd64",
    "linux-image-6.1.0-57-amd64",
    "linux-image-6.1.0-57-amd64-dbg",
    "linux-image-6.1.0-59-amd64-unsigned",
    "linux-image-6.1.0-58-cloud-amd64",
    "linux-image-6.1.0-58-rt-amd64",
    "linux-image-6.12.9+deb12-amd64",
    "linux-image-6.12.117+deb12-amd64",
    "linux-image-6.12-amd64",
    "linux-image-amd64",
    "linux-image-6.12.200-arm64",
]


def test_newest_plain_image_of_each_series_oldest_series_first() -> None:
    newest = {series: offer.package for series, offer in newest_by_series(LISTED).items()}
    assert list(newest.items()) == [
        ("5.10", "linux-image-5.10.0-35-amd64"),
        ("6.1", "linux-image-6.1.0-57-amd64"),
        ("6.12", "linux-image-6.12.117+deb12-amd64"),
    ]


def test_nothing_offered_is_no_series() -> None:
    assert newest_by_series([]) == {}


def test_series_sort_by_number() -> None:
    assert sorted(["6.12", "5.10", "6.1"], key=series_key) == ["5.10", "6.1", "6.12"]
