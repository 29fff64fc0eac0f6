# SPDX-License-Identifier: Apache-2.0
"""Everything that speaks to the kernel of BPF: headers, loading, maps, drains, kernel addresses."""
