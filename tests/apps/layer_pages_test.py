"""apps/README.md shows every layer type with its keys and defaults as they are."""

import os
import unittest

from tests.apps import layer_pages
from tests.apps import netcl_cli


class LayerPages(unittest.TestCase):
    def test_readme_is_current(self):
        os.environ.update(netcl_cli.Cli().env)
        layer_pages.main([netcl_cli.runfile("apps/README.md"), netcl_cli.runfile("apps/netcl-app")])


if __name__ == "__main__":
    unittest.main()
