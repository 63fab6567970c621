"""Output for people: text tables, notebook displays, differences between checkpoints, the HTML report.

Importing this package registers the displays of objects of the lower packages.
"""

from ckptfmt._show import notebook as _notebook  # noqa: F401
from ckptfmt._show import tables as _tables  # noqa: F401
