# SPDX-License-Identifier: Apache-2.0
"""Tests mirror agent/ and server/; bpf/ runs on the real kernel, web/ in node and Chromium, e2e/ the whole path."""
