# SPDX-License-Identifier: Apache-2.0
"""The one protocol behind which profiles are kept, and its SQL engine."""
