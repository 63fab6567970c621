"""The optional compiled form of ``ckptfmt/_values/proof.py``, and the scan that only it uses.

Everything else of the project is in pyproject.toml.
"""

import os

from setuptools import Extension, setup

# Without a C compiler the extension is left out, and the same source runs as plain Python.
extensions = [
    Extension("ckptfmt._values.scan", ["ckptfmt/_values/scan.pyx"]),
    Extension("ckptfmt._values.proof", ["ckptfmt/_values/proof.py"], depends=["ckptfmt/_values/proof.pxd"]),
]

if os.environ.get("CKPTFMT_PURE_PYTHON"):
    setup()
else:
    from Cython.Build import cythonize

    # The types are those of proof.pxd: Python's annotations say other things.
    directives = {"language_level": 3, "annotation_typing": False}
    compiled = cythonize(extensions, compiler_directives=directives)
    for each in compiled:
        each.optional = True  # cythonize would lose it
    setup(ext_modules=compiled)
