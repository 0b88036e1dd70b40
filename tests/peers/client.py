"""Drives the official Python client (`mcp` 2.x). See README.md beside this file for the job and what is printed."""

import json
import sys
import traceback

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

ERAS = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}


def say(line):
    print(json.dumps(line), flush=True)


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Seen:
    """What the server sent beside its answers."""

    def __init__(self, root):
        self.root = root
        self.counts = {"progress": [], "logs": 0, "sampling": 0, "elicitation": 0, "roots": 0}

    async def progress(self, progress, total, message):
        self.counts["progress"].append(progress)
        say({"do": "progress", "progress": progress, "message": message})

    async def log(self, _params):
        self.counts["logs"] += 1

    async def sample(self, _context, _params):
        self.counts["sampling"] += 1
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="sampled by the peer"), model="peer"
        )

    async def elicit(self, _context, _params):
        self.counts["elicitation"] += 1
        return types.ElicitResult(action="accept", content={"name": "Peer"})

    async def roots(self, _context):
        self.counts["roots"] += 1
        return types.ListRootsResult(roots=[types.Root(uri=self.root, name="root")])


def transport(job):
    if job.get("url"):
        headers = {"authorization": f"Bearer {job['token']}"} if job.get("token") else None
        return streamable_http_client(job["url"], http_client=create_mcp_http_client(headers=headers))
    program, *arguments = job["command"]
    return stdio_client(StdioServerParameters(command=program, args=arguments, env=job.get("env"), cwd=job.get("cwd")))


async def call(client, seen, step):
    progress = seen.progress if step.get("progress") else None
    seconds = step["timeout_ms"] / 1000 if "timeout_ms" in step else None

    async def run():
        return await client.call_tool(
            step["tool"], step.get("arguments"), read_timeout_seconds=seconds, progress_callback=progress
        )

    if "cancel_after_ms" not in step:
        return plain(await run())
    with anyio.move_on_after(step["cancel_after_ms"] / 1000):
        return plain(await run())
    await anyio.sleep(0.5)  # the courtesy cancellation is sent in the background
    return {"cancelled": True}


async def play(client, seen, step):
    match step["do"]:
        case "list":
            return plain(await client.list_tools())
        case "call":
            return await call(client, seen, step)
        case "together":
            results = [None] * len(step["calls"])

            async def one(index, each):
                results[index] = await call(client, seen, each)

            async with anyio.create_task_group() as group:
                for index, each in enumerate(step["calls"]):
                    group.start_soon(one, index, each)
            return results
        case "read":
            return plain(await client.read_resource(step["uri"]))
        case "level":
            return plain(await client.set_logging_level(step["level"]))
        case "wait":
            await anyio.sleep(step["ms"] / 1000)
            return {}
        case other:
            raise ValueError(f"unknown step {other!r}")


async def main():
    job = json.loads(sys.argv[1])
    seen = Seen(job.get("root", "file:///tmp"))
    client = Client(
        transport(job),
        mode=ERAS[job.get("era", "auto")],
        sampling_callback=seen.sample,
        elicitation_callback=seen.elicit,
        list_roots_callback=seen.roots,
        logging_callback=seen.log,
        log_level="debug",
    )
    async with client:
        say({"do": "connect", "version": client.protocol_version})
        for step in job["steps"]:
            try:
                say({"do": step["do"], "result": await play(client, seen, step)})
            except MCPError as error:
                say({"do": step["do"], "error": {"code": error.error.code, "message": error.error.message}})
            except TimeoutError as error:
                say({"do": step["do"], "error": {"code": "timeout", "message": str(error)}})
    say({"do": "seen", **seen.counts})


try:
    anyio.run(main)
except BaseException:  # the whole story on one line, for the test that reads it
    say({"do": "broken", "error": traceback.format_exc()})
    raise SystemExit(1)
