"""Prints `python/freewheel/_config.py`: the keys of an experiment as types, from its JSON Schema.

`python python/config_types.py > python/freewheel/_config.py`; a test compares both.
"""

import json
import keyword
import textwrap
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).parents[1] / "schemas" / "sim.schema.json"
WIDTH = 116
HEAD = '''"""The keys of an experiment as types. Made from its JSON Schema by `python/config_types.py`."""

from os import PathLike
from typing import Any, Literal, Required, TypeAlias, TypedDict

'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
# A path may be given as an object, and a drive as a `Drive`.
PATHS = {("ExperimentKeys", "drive"), ("WorkloadTrace", "file")}


def main() -> None:
    schema = json.loads(SCHEMA.read_text())
    print(HEAD + "\n".join(definitions(schema)).rstrip())


def definitions(schema: dict[str, Any]) -> list[str]:
    """Every type, those that others use first in order of their names."""
    found = []
    for name, of in sorted(schema["$defs"].items()):
        found += definition(name, of)
    return found + definition("ExperimentKeys", schema)


def definition(name: str, of: dict[str, Any]) -> list[str]:
    if "properties" in of:
        return [keys(name, of)]
    kinds = of.get("oneOf", of.get("anyOf", []))
    if kinds and all("properties" in kind for kind in kinds):
        return variants(name, of, kinds)
    text = type_of(of, quoted=True)
    # A text that says what is wanted: the type alone would not.
    return [f'{name}: TypeAlias = {text}\n"""{sentence(of)}"""\n']


def variants(name: str, of: dict[str, Any], kinds: list[dict[str, Any]]) -> list[str]:
    """Tables of which each has its own keys; the constant of one names it."""
    names, texts = [], []
    for number, kind in enumerate(kinds):
        constants = [key["const"] for key in kind["properties"].values() if "const" in key]
        tail = constants[0] if constants else str(number + 1)
        names.append(name + "".join(part.title() for part in tail.split("-")))
        texts.append(keys(names[-1], kind))
    union = " | ".join(names)
    return [*texts, f'{name}: TypeAlias = "{union}"\n"""{sentence(of)}"""\n']


def keys(name: str, of: dict[str, Any]) -> str:
    if any(keyword.iskeyword(key) for key in of["properties"]):
        return keys_of_python(name, of)
    lines = [f"class {name}(TypedDict, total=False):", f'    """{sentence(of)}"""', ""]
    for key, value in of["properties"].items():
        text = type_of(value)
        if (name, key) in PATHS:
            text = "str | PathLike[str] | Any"
        if key in of.get("required", []):
            text = f"Required[{text}]"
        lines.append(f'    {key}: "{text}"' if '"' not in text else f"    {key}: {text}")
        if "description" in value:
            lines.append(f'    """{sentence(value)}"""')
    return "\n".join(lines) + "\n\n"


def keys_of_python(name: str, of: dict[str, Any]) -> str:
    """A type with a key that is a word of Python's own, as `from`, which no class can have."""
    lines = [f'{name} = TypedDict("{name}", {{']
    for key, value in of["properties"].items():
        text = type_of(value)
        wanted = f"Required[{text}]" if key in of.get("required", []) else text
        lines.append(f'    "{key}": "{wanted}",')
    return "\n".join([*lines, "}, total=False)", f'"""{sentence(of)}"""']) + "\n\n"


def type_of(of: dict[str, Any], quoted: bool = False) -> str:
    """The type of a value."""
    if "$ref" in of:
        name = of["$ref"].rsplit("/", 1)[1]
        return f'"{name}"' if quoted else name
    if "const" in of:
        return f"Literal[{json.dumps(of['const'])}]"
    if "enum" in of:
        return f"Literal[{', '.join(json.dumps(word) for word in of['enum'])}]"
    for several in ("oneOf", "anyOf"):
        if several in of:
            return union([type_of(kind) for kind in of[several]], quoted)
    kind = of.get("type")
    if isinstance(kind, list):
        return " | ".join(PLAIN[one] if one in PLAIN else type_of({**of, "type": one}) for one in kind)
    if kind == "array":
        return f"list[{type_of(of['items'])}]" if isinstance(of.get("items"), dict) else "list[Any]"
    if kind == "object":
        return "dict[str, Any]"
    return PLAIN.get(kind or "", "Any")


def union(kinds: list[str], quoted: bool) -> str:
    literals = [kind[8:-1] for kind in kinds if kind.startswith("Literal[")]
    others = [kind for kind in dict.fromkeys(kinds) if not kind.startswith("Literal[")]
    parts = ([f"Literal[{', '.join(literals)}]"] if literals else []) + others
    text = " | ".join(parts)
    return f"'{text}'" if quoted and others else text


def sentence(of: dict[str, Any]) -> str:
    text = " ".join(of.get("description", "").split()).replace("\\", "\\\\")
    if not text.endswith("."):
        text += "."
    return text[0].upper() + text[1:] if len(text) > 1 else "Keys."


if __name__ == "__main__":
    main()
