"""One nursery of warm kernels for all tests of this folder that one process runs."""

from __future__ import annotations

import os

import pytest
from warm_kernels import warm_kernels

from rlnb.classroom.pages import ONE_THREAD


@pytest.fixture(scope="session")
def nursery():
    with warm_kernels(os.environ | ONE_THREAD) as running:
        yield running
