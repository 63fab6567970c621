"""For people: tables of text, notebook displays, differences, the HTML report.

Importing this room registers how the objects of the rooms below show themselves.
"""

from ckptfmt._show import notebook as _notebook  # noqa: F401
from ckptfmt._show import tables as _tables  # noqa: F401
