"""Runs the bridge over the real `desktop_env` of a checkout: its class and controller, with no virtual machine.

A provider that starts nothing points at a small HTTP server, which has the paths of OSWorld's server in the machine.
Packages that the checkout imports and that are not installed here are replaced by empty ones. Arguments: the checkout,
the bridge, a file for what the server was asked, and the bridge's own arguments.
"""

import importlib.abc
import importlib.machinery
import json
import runpy
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import MagicMock

import requests  # before others are replaced: the controller uses it

CHECKOUT, BRIDGE, LOG, *ARGUMENTS = sys.argv[1:]
sys.path.insert(0, CHECKOUT)
sys.path.insert(1, str(Path(__file__).parent / "stub" / "desktop_env"))  # the pictures of the stand-in


class Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that nothing else finds. The standard library asks for modules of other systems."""

    def find_spec(self, name, path=None, target=None):
        return (
            None
            if name.partition(".")[0] in {"desktop_env", *sys.stdlib_module_names}
            else importlib.machinery.ModuleSpec(name, self, is_package=True)
        )

    def create_module(self, spec):
        made = MagicMock(name=spec.name)
        made.__path__, made.__spec__ = [], spec
        if spec.name == "gymnasium":
            made.Env = object
        return made

    def exec_module(self, module):
        pass


class Machine(BaseHTTPRequestHandler):
    """The server in a virtual machine."""

    def do_GET(self):
        import importlib.util

        spec = importlib.util.spec_from_file_location(
            "pictures", Path(__file__).parent / "stub/desktop_env/desktop_env.py"
        )
        pictures = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(pictures)
        kind, data = {
            "/screenshot": ("image/png", pictures.png(96, 64)),
            "/terminal": ("application/json", b'{"output": ""}'),
            "/accessibility": ("application/json", json.dumps({"AT": pictures.TREE % "x"}).encode()),
        }[self.path]
        self.answer(kind, data)

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        with Path(LOG).open("a") as log:
            log.write(json.dumps([self.path, json.loads(asked)]) + "\n")
        self.answer("application/json", b'{"output": "", "error": "", "returncode": 0}')

    def answer(self, kind, data):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


assert requests.get
sys.meta_path.append(Empty())
for name in ("metrics", "metrics.utils", "getters"):  # they import what only evaluating in a machine needs
    sys.modules[f"desktop_env.evaluators.{name}"] = MagicMock()
server = ThreadingHTTPServer(("127.0.0.1", 0), Machine)
threading.Thread(target=server.serve_forever, daemon=True).start()

import desktop_env.desktop_env as real  # noqa: E402
from desktop_env.providers.docker import manager  # noqa: E402

provider = MagicMock()
provider.get_ip_address.return_value = f"127.0.0.1:{server.server_port}:9222:8006:8080"
manager.VMS_DIR = tempfile.mkdtemp()
manager._download_vm = lambda folder: Path(folder, "Ubuntu.qcow2").touch()
real.create_vm_manager_and_provider = lambda *_args, **_more: (MagicMock(), provider)
real.metrics.typed = lambda result: float(result == "done")
real.getters.get_stub = lambda _env, config: config["value"]
sys.argv = [BRIDGE, *ARGUMENTS]
runpy.run_path(BRIDGE, run_name="__main__")
