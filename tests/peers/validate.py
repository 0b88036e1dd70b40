"""Says which documents of standard input are valid: {"schema": …, "documents": {NAME: …}} in, {NAME: error or null} out."""

import json
import sys

from jsonschema import Draft202012Validator

given = json.load(sys.stdin)
Draft202012Validator.check_schema(given["schema"])
validator = Draft202012Validator(given["schema"])


def error(document):
    found = next(validator.iter_errors(document), None)
    return None if found is None else f"{found.json_path}: {found.message}"


print(json.dumps({name: error(document) for name, document in given["documents"].items()}))
