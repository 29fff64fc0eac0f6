# SPDX-License-Identifier: Apache-2.0
"""An error of the kernel whose remedy is known; `doctor` shows the two apart."""

from agent.errors import KernelError


class KernelRefusal(KernelError):
    """`what` happened, and the `remedy`: what to do or type."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}")
        self.what = what
        self.remedy = remedy
