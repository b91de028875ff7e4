"""Print what pyproject.toml requires, for `pip install -r`; arguments name extras whose requirements are added.

The images install these in a layer of their own, which is built again only when pyproject.toml changes.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
if unknown := set(sys.argv[1:]) - set(extras):
    sys.exit(f"pyproject.toml has no extra {', '.join(sorted(unknown))}; it has {', '.join(extras)}")
print("\n".join([*project["dependencies"], *(line for name in sys.argv[1:] for line in extras[name])]))
