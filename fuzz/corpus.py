#!/usr/bin/env python3
"""The inputs that fuzzing starts from: those that the tests have, and `inputs/TARGET.jsonl`, one JSON string a line.

    corpus.py unpack TARGET FOLDER   write them as files into a folder, and FOLDER.dict, a dictionary
    corpus.py pack TARGET FOLDER     keep the shortest files of a folder in `inputs/TARGET.jsonl`

Bytes that are no UTF-8 stand in the strings as lone surrogates (Python's `surrogateescape`).
"""

import base64
import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
TEXTS = TESTS / "integration" / "shell" / "texts"

# What `pack` keeps: as many inputs, of at most so many bytes.
MOST, LONGEST = 300, 300


def strings(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def cases(*kinds):
    return [case for kind in kinds for case in strings(TESTS / "cases" / f"{kind}.jsonl")]


def given(kinds, argument):
    values = [case.get("call", {}).get("arguments", {}).get(argument) for case in cases(*kinds)]
    return [value for value in values if isinstance(value, str)]


def of_tests(target):
    """What the tests have for a target."""
    if target == "shell":
        return given(["shell"], "command") + strings(TEXTS / "whole.jsonl")
    if target == "path":
        return given(["path", "symlink", "glob", "uri"], "path") + given(["uri"], "uri")
    if target == "policy_load":
        files = sorted([*(HERE.parent / "policies").glob("*.yaml"), *(TESTS / "fixtures").glob("*/*.yaml")])
        texts = [case["policy_raw"] for case in cases("policy-yaml", "host", "args", "sql") if "policy_raw" in case]
        return texts + [file.read_bytes() for file in files if file.stat().st_size <= 4096]
    encoded = [base64.b64decode(case["call_raw_b64"]) for case in cases("json") if "call_raw_b64" in case]
    return encoded + [case["call_raw"] for case in cases("json") if "call_raw" in case]


def words(target):
    """What an input is likely to be made of."""
    if target == "shell":
        programs = [(TEXTS / name).read_text().splitlines() for name in ("programs.txt", "words.txt")]
        # Characters that a table of letters has no place for.
        far = ["\U000e0001", "\U000e0072", "\U000fffff", "\U0010fffe"]
        return strings(TEXTS / "parts.jsonl") + programs[0] + programs[1] + far
    if target == "path":
        return ["../", "docs/", "secrets/", "key", "up/", "later", "%2f", "%2e", "file://", "//", "~", "\\", "/proc/self/root"]
    if target == "policy_load":
        schema = json.loads((HERE.parent / "policies" / "policy.schema.json").read_text())
        return sorted(keys_and_words(schema)) + ["@fs_read", "@fs_write", "@shell", "**/", "&a ", "*a", "<<: ", "- ", "{ ", "!!", "|-\n"]
    return ['"jsonrpc":"2.0"', '"method"', '"params"', '"id"', '"result"', '"error"', '"_meta"', "\\u0000", "1e9", "data: "]


def keys_and_words(schema):
    if isinstance(schema, list):
        return {word for part in schema for word in keys_and_words(part)}
    if not isinstance(schema, dict):
        return set()
    own = {f"{key}: " for key in schema.get("properties", {})}
    own |= {word for word in schema.get("enum", []) if isinstance(word, str)}
    return own | keys_and_words(list(schema.values()))


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def unpack(target, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for text in map(as_bytes, of_tests(target) + strings(HERE / "inputs" / f"{target}.jsonl")):
        (folder / hashlib.sha256(text).hexdigest()[:16]).write_bytes(text)
    escaped = ["".join(f"\\x{byte:02x}" for byte in as_bytes(word)) for word in words(target)]
    # The fuzzer knows words of up to 64 bytes.
    folder.with_suffix(".dict").write_text("".join(f'"{word}"\n' for word in dict.fromkeys(escaped) if 0 < len(word) <= 4 * 64))


def pack(target, folder):
    known = {as_bytes(text) for text in of_tests(target)}
    found = {file.read_bytes() for file in folder.iterdir()} - known
    kept = sorted((text for text in found if len(text) <= LONGEST), key=lambda text: (len(text), text))[:MOST]
    lines = [json.dumps(text.decode("utf-8", "surrogateescape")) + "\n" for text in kept]
    (HERE / "inputs" / f"{target}.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("unpack", "pack"):
        sys.exit(__doc__)
    {"unpack": unpack, "pack": pack}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
