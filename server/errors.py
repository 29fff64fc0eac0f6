# SPDX-License-Identifier: Apache-2.0
"""The errors of the server. A child class exists only where someone acts differently on it."""


class ServerError(Exception):
    """Something the user must know; the message says what and how to mend it."""


class ConfigError(ServerError):
    """A setting has a value that cannot be used."""


class BadRequest(ServerError):
    """A question or a push that makes no sense as it stands; asking again does not help."""


class LimitExceeded(ServerError):
    """A question or a push is larger than what is allowed; the message names the limit."""


class Overloaded(ServerError):
    """Not now: disk full, database locked, too much at once. The same call may be made again."""


class SchemaTooNew(ServerError):
    """The data directory was written by a newer version of the server."""
