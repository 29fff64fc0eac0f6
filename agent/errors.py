# SPDX-License-Identifier: Apache-2.0
"""The errors of the agent. A child class exists only where someone acts differently on it."""

from emberwatch.v1.marks_pb2 import LOSS_REASON_REJECTED_MALFORMED, LossReason


class AgentError(Exception):
    """Something the user must know; the message says what and how to mend it."""


class KernelError(AgentError):
    """The kernel refused or lacks something a collector needs."""


class ConfigError(AgentError):
    """A setting has a value that cannot be used."""


class PushRejected(AgentError):
    """The server refused a window for good; sending it again is of no use."""

    def __init__(self, message: str, reason: LossReason = LOSS_REASON_REJECTED_MALFORMED) -> None:
        """`reason` is what its samples are counted as."""
        super().__init__(message)
        self.reason = reason


class PushDelayed(AgentError):
    """The server could not take a window now; the same window may be sent again."""
