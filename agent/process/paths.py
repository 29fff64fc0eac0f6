# SPDX-License-Identifier: Apache-2.0
"""Takes what is private out of a path before it is sent.

`/home/alice/bin/x` becomes `/home/…/bin/x`, everything between a temporary folder and the base name becomes one `…`, and what looks like
a UUID or a hex token becomes `…` anywhere. In temporary folders short tokens go too. Names people gave to programs stay.
"""

import re

_CUT = "…".encode()
_HOME = re.compile(rb"^(/(?:var/|export/|usr/)?home/|/Users/|/run/user/|/(?:var/)?run/media/)([^/]+)")
_TEMPORARY = re.compile(rb"^(/tmp/|/var/tmp/|/dev/shm/|/run/user/\xe2\x80\xa6/)(.*)$", re.DOTALL)
_UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_LONG_HEX = re.compile(rb"(?<![0-9A-Za-z])(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{8,}(?![0-9A-Za-z])")
_SHORT_HEX = re.compile(rb"(?<![0-9A-Za-z])(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{4,}(?![0-9A-Za-z])")
_WORD = re.compile(rb"[0-9A-Za-z]{6,}")
_SWITCH = re.compile(rb"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")


def reduce_path(path: bytes) -> bytes:
    """The path as it may leave the host."""
    path = _HOME.sub(rb"\g<1>" + _CUT, path)
    path = _UUID.sub(_CUT, path)
    path = _LONG_HEX.sub(_CUT, path)
    temporary = _TEMPORARY.match(path)
    if temporary is None:
        return path
    folders, slash, name = temporary[2].rpartition(b"/")
    name = _WORD.sub(_without_random_word, _SHORT_HEX.sub(_CUT, name))
    return temporary[1] + (_CUT + slash if folders else b"") + name


def _without_random_word(word: re.Match[bytes]) -> bytes:
    """Letters and digits that change places twice or more were drawn by a machine."""
    return _CUT if len(_SWITCH.findall(word[0])) >= 2 else word[0]
