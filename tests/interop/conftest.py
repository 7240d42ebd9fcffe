"""Exact numbers want float64; the default is restored for whoever comes next."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
