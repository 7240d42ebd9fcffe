"""Pictures and tables that stand still, each with the numbers they show."""

from __future__ import annotations
