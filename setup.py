"""The build of the optional compiled form of ``ckptfmt/_values/proof.py`` and of ``scan``, which it uses.

All other settings of the project are in pyproject.toml.
"""

import os

from setuptools import Extension, setup

# Without a C compiler the extensions are left out, and the same source runs as plain Python.
extensions = [
    Extension("ckptfmt._values.scan", ["ckptfmt/_values/scan.pyx"]),
    Extension("ckptfmt._values.proof", ["ckptfmt/_values/proof.py"], depends=["ckptfmt/_values/proof.pxd"]),
]

if os.environ.get("CKPTFMT_PURE_PYTHON"):
    setup()
else:
    from Cython.Build import cythonize

    # The types come from proof.pxd: the annotations in the source are for type checkers only.
    directives = {"language_level": 3, "annotation_typing": False}
    compiled = cythonize(extensions, compiler_directives=directives)
    for each in compiled:
        each.optional = True  # set after cythonize, which drops it
    setup(ext_modules=compiled)
