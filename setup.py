"""What pyproject.toml cannot say: a wheel carries the course's data and pages inside the package.

`rlnb.shipped` finds them there, in rlnb/_shipped. They are copied when a wheel is built, and lie
nowhere twice in a checkout: an editable install reads `data/` and `notebooks/` themselves.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

COURSE = Path(__file__).resolve().parent
SHIPPED = ("data", "notebooks")
# Twins are for authors; the others are made by JupyterLab and Python.
LEFT_OUT = shutil.ignore_patterns("text", ".ipynb_checkpoints", "__pycache__", "*.part")


class BuildWithCourse(build_py):
    """build_py, and then `data` and `notebooks` into rlnb/_shipped of what is built."""

    def shipped(self) -> list[tuple[Path, Path]]:
        """Each folder and where its copy goes."""
        target = Path(self.build_lib) / "rlnb" / "_shipped"
        return [(COURSE / name, target / name) for name in SHIPPED]

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for source, target in self.shipped():
            shutil.rmtree(target, ignore_errors=True)  # of an earlier build, with older pages
            shutil.copytree(source, target, ignore=LEFT_OUT)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Every file that `run` writes; with the copies."""
        copies = [
            str(file)
            for _, target in self.shipped()
            for file in sorted(target.rglob("*"))
            if file.is_file()
        ]
        return super().get_outputs(include_bytecode) + ([] if self.editable_mode else copies)


setup(cmdclass={"build_py": BuildWithCourse})
