"""The parameter `device` of checks that compute with torch, apart from what works on the device."""

from typing import Literal

Choice = Literal["auto", "cpu"]
"""`auto`: the node's devices; `cpu`: the CPU, even on a node with GPUs."""
