"""A small server that speaks what the engine uses of vLLM's HTTP interface. Its tokens depend on the request alone.

As a program it takes vLLM's arguments, of which it reads the model and where it listens. It also has a child, as vLLM
has.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

from aiohttp import web

TROUBLE = 13
"""The seed of a request that meets the next fault of the folder."""
FAULTS = "FAKE_FAULTS"
"""The environment variable with the folder of faults. Each is a file, `<number>-<fault>`, and happens once.

`unnamed` happens when a server is told a name, each other one to the request with the seed `TROUBLE`."""


class Fake:
    """A server. `version`, `loaded`: what it was told. `salts`, `asked`: of the requests that it was asked.

    `called`: the name of its model. `meanwhile`: the versions that a request would have had while weights were loaded.
    `loras`: LoRA's weights that it has, name -> folder; None: it takes none. `drawn`: the names of LoRA's weights that
    requests asked for. `pace_s`: seconds of one answer; above 0 it answers one after the other, as one whose cache
    holds one prompt.
    """

    def __init__(self, model: Path, faults: Path | None) -> None:
        self.model, self.faults = model, faults
        self.version, self.called = "default", "m"
        self.loaded: list[str] = []
        self.meanwhile: list[str] = []
        self.salts: list[str] = []
        self.asked: list[list[int]] = []
        self.loras: dict[str, str] | None = {}
        self.drawn: list[str | None] = []
        self.pace_s = 0.0
        self._turn = asyncio.Lock()
        self.app = web.Application()
        self.app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/v1/models", self.models),
                web.post("/collective_rpc", self.rpc),
                web.post("/update_weight_version", self.name),
                web.post("/v1/load_lora_adapter", self.add_lora),
                web.post("/v1/unload_lora_adapter", self.drop_lora),
                web.post("/inference/v1/generate", self.generate),
            ]
        )

    async def health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def models(self, request: web.Request) -> web.Response:
        loras = [
            {"id": name, "root": folder, "parent": self.called} for name, folder in (self.loras or {}).items()
        ]
        served = {"id": self.called, "root": str(self.model), "parent": None, "max_model_len": 512}
        return web.json_response({"data": [served, *loras]})

    async def add_lora(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self.loras is None:
            return web.json_response({"detail": "Not Found"}, status=404)
        assert body["lora_name"] not in self.loras
        assert Path(body["lora_path"], "adapter_config.json").is_file()
        self.loras[body["lora_name"]] = body["lora_path"]
        self.meanwhile.append(self.version)
        return web.Response(text=f"Success: LoRA adapter '{body['lora_name']}' added successfully.")

    async def drop_lora(self, request: web.Request) -> web.Response:
        name = (await request.json())["lora_name"]
        self.meanwhile.append(self.version)
        if self.loras is None or name not in self.loras:
            told = {"error": {"message": f"The lora adapter '{name}' cannot be found."}}
            return web.json_response(told if self.loras is not None else {"detail": "Not Found"}, status=404)
        del self.loras[name]
        return web.Response(text=f"Success: LoRA adapter '{name}' removed successfully.")

    async def rpc(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert body["method"] == "reload_weights"
        self.loaded.append(body["kwargs"]["weights_path"])
        self.meanwhile.append(self.version)
        return web.json_response({"results": [None]})

    async def name(self, request: web.Request) -> web.Response:
        if self.meets("unnamed"):
            return web.Response(status=500, text="no name")
        self.version = (await request.json())["new_version"]
        return web.json_response({"success": True})

    async def generate(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        arguments = body["sampling_params"]["extra_args"]["rlanything"]
        self.salts.append(body["cache_salt"])
        self.asked.append(body["token_ids"])
        self.drawn.append(body.get("model"))
        if "model" in body and body["model"] not in (self.loras or {}):
            return web.json_response({"error": {"message": "The model does not exist."}}, status=404)
        if self.pace_s:
            async with self._turn:
                await asyncio.sleep(self.pace_s)
        fault = self.fault() if arguments["seed"] == TROUBLE else ""
        if fault == "die":
            print("out of memory, says the fake", flush=True)
            os._exit(7)
        if fault == "hang":
            await asyncio.sleep(60)
        if fault == "drop":
            assert request.transport is not None
            request.transport.abort()
        if fault == "renamed":
            self.version = "of another program"
        if fault.isdecimal():
            return web.Response(status=int(fault), text="no")
        if fault == "garbage":
            return web.Response(text="<html>")
        if fault == "deep":
            return web.Response(text="[" * 100_000)
        answer = self.answer(body, arguments["seed"])
        if fault == "short":
            answer["choices"][0]["logprobs"]["content"].pop()
        if fault == "aborted":  # as a server that is stopped answers what it was asked
            answer = self.answer(body, arguments["seed"], left_out=2)
        if fault == "formless":
            answer = {"choices": []}
        return web.json_response(answer)

    def answer(self, body: dict, seed: int, left_out: int = 0) -> dict:
        count = body["sampling_params"]["max_tokens"] - left_out
        ids = [3 + zlib.crc32(f"{seed} {body['token_ids']} {at}".encode()) % 300 for at in range(count)]
        drawn = [{"token_id": token, "logprob": -token / 1000} for token in ids]
        spans = [{"version": self.version, "start": 0, "end": count}]
        return {"choices": [{"token_ids": ids, "logprobs": {"content": drawn}, "weight_versions": spans}]}

    def meets(self, fault: str) -> bool:
        """Whether the folder has a fault of a kind, for the first of several servers that ask."""
        for found in self.faults.glob(f"*-{fault}") if self.faults is not None else ():
            with suppress(FileNotFoundError):
                found.unlink()
                return True
        return False

    def fault(self) -> str:
        if self.faults is None:
            return ""
        found = sorted(self.faults.iterdir())
        if not found:
            return ""
        found[0].unlink()
        return found[0].name.partition("-")[2]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--uds")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    arguments, _ = parser.parse_known_args()
    print("the fake starts", flush=True)
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    faults = os.environ.get(FAULTS)
    if faults:
        Path(faults).parent.joinpath(f"pids-{os.getpid()}-{child.pid}").touch()
    app = Fake(arguments.model, Path(faults) if faults else None).app
    web.run_app(app, path=arguments.uds, host=arguments.host, port=arguments.port, print=None)


if __name__ == "__main__":
    main()
