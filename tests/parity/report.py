"""Print how far rlnb is from TRL (installed, asked now) and from verl (recorded).

python tests/parity/report.py
"""

from __future__ import annotations

from trl_comparison import trl_table
from verl_table import verl_table

if __name__ == "__main__":
    print(trl_table())
    print()
    print(verl_table())
