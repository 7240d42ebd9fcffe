"""The exercises of the course, one module per family. Run them through `rlnb.check`."""
