"""`DesktopEnv` without a virtual machine. Tasks say how it misbehaves."""

import struct
import sys
import time
import zlib
from pathlib import Path

print("OSWorld prints when it is imported")


def png(width, height, shade=0):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes([shade]) * width for _ in range(height))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


TREE = """<desktop-frame xmlns:st="https://accessibility.ubuntu.example.org/ns/state"
 xmlns:cp="https://accessibility.ubuntu.example.org/ns/component" name="main">
<push-button name="Save" st:visible="true" st:showing="true" cp:screencoord="(10, 20)" cp:size="(30, 10)"/>
<entry name="" st:visible="true" st:showing="true" st:focused="true" cp:screencoord="(0, 40)" cp:size="(90, 20)"
>%s</entry>
<push-button name="Hidden" st:visible="true" cp:screencoord="(10, 20)" cp:size="(30, 10)"/>
</desktop-frame>"""


class SetupController:
    def setup(self, config):
        for number, one in enumerate(config if isinstance(config, list) else []):
            try:
                if one["type"] == "unreachable":
                    raise ConnectionRefusedError("the machine does not answer")
                if one["type"] != "nothing":
                    raise Exception("Setup Download - Invalid URL () or path ().")
            except Exception as error:
                raise Exception(f"Setup step {number + 1} failed: {error}") from error


class DesktopEnv:
    def __init__(
        self,
        provider_name="vmware",
        region=None,
        path_to_vm=None,
        snapshot_name="init_state",
        action_space="pyautogui",
        cache_dir="cache",
        screen_size=(1920, 1080),
        headless=False,
        require_a11y_tree=True,
        require_terminal=False,
        os_type="Ubuntu",
        enable_proxy=False,
        client_password="",
    ):
        assert action_space == "computer_13"
        assert snapshot_name == "init_state"
        self.cache_dir_base = Path(cache_dir)
        self.screen_size, self.require_a11y_tree = screen_size, require_a11y_tree
        self.typed, self.action_history = "", []
        self.setup_controller, self.is_environment_used = SetupController(), False

    def reset(self, task_config=None, seed=None, options=None):
        print("resetting")
        self.typed, self.action_history = "", []
        self.reverted, self.is_environment_used = self.is_environment_used, False
        self.task = task_config
        if task_config.get("config") == "no snapshot":
            raise FileNotFoundError("no such snapshot")
        if task_config.get("config") == "no machine":
            raise RuntimeError("the provider has no machine")
        self._set_task_info(task_config)
        self.setup_controller.setup(self.config)
        return self._get_obs()

    def _set_task_info(self, task_config):
        self.config = task_config["config"]
        known = "raise", "nan", "infeasible", "typed", "unreachable", "swallowed", "reverted", "fetched"
        dict.fromkeys(known)[task_config["evaluator"]["func"]]
        self.cache_dir = self.cache_dir_base / task_config["id"]
        self.cache_dir.mkdir(parents=True, exist_ok=True)

    def step(self, action, pause=2):
        self.action_history.append(action)
        if isinstance(action, dict):
            assert set(action) == {"action_type", "parameters"}
            if action["action_type"] == "TYPING":
                self.typed += action["parameters"]["text"]
            if action["action_type"] == "HOTKEY":
                self.typed += "<" if action["parameters"]["keys"] == ["shift", ","] else ""
        if self.task.get("config") == "die":
            sys.exit(3)
        return self._get_obs(), 0, action in ("DONE", "FAIL"), {}

    def evaluate(self):
        kind = self.task["evaluator"]["func"]
        if kind == "raise":
            raise ValueError("the file is gone")
        if kind == "nan":
            return float("nan")
        if kind == "unreachable":
            raise ConnectionResetError("the machine does not answer")
        if kind == "swallowed":
            self.task["config"] = "blind"
            return 0
        if kind == "fetched":
            return int(self._fetched() == self.typed)
        if kind == "reverted":
            return int(self.reverted)
        if kind == "infeasible":
            return int(self.action_history[-1] == "FAIL")
        if self.action_history and self.action_history[-1] == "FAIL":
            return 0
        return int(self.typed == self.task["evaluator"]["expected"])

    def _fetched(self):
        """The result, by way of a file in `cache_dir`, read when each of `count` machines has written its own."""
        (self.cache_dir / "result.txt").write_text(self.typed)
        meeting = Path(self.task["evaluator"]["meeting"])
        (meeting / self.typed).touch()
        until = time.monotonic() + 20
        while len(list(meeting.iterdir())) < self.task["evaluator"]["count"] and time.monotonic() < until:
            time.sleep(0.01)
        return (self.cache_dir / "result.txt").read_text()

    def close(self):
        print("closed", file=sys.stderr)

    def _get_obs(self):
        seen = self.require_a11y_tree and self.task.get("config") != "treeless"
        tree = TREE % self.typed.replace("<", "&lt;") if seen else None
        picture = (
            None
            if self.task.get("config") == "blind"
            else png(*self.screen_size, shade=9 * len(self.typed) % 256)
        )
        return {
            "screenshot": picture, "accessibility_tree": tree, "terminal": None,
            "instruction": self.task["instruction"],
        }  # fmt: skip
