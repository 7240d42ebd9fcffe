"""What learners touch: explorers, figures, exercise checks, page tools.

Nothing is imported here. `from rlnb.classroom import explorers` loads matplotlib and ipywidgets;
`from rlnb.classroom import check` needs neither.
"""
