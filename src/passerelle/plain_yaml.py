"""Plain YAML: sections, keys, and values that stand where they are used.

Aliases, merge keys and tags are refused, so that no file is larger than it looks and none makes an object; a date
is text, as in YAML 1.2. Faults are one line, with the file's name, what was found, and what is allowed.
"""

import re
import reprlib
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

MAX_BYTES = 100_000
"""A larger file is no params file."""

_TAG = "tag:yaml.org,2002:"
_KINDS = frozenset(
    f"{_TAG}{kind}" for kind in ("str", "int", "float", "bool", "null", "timestamp", "map", "seq")
)


class ParamsError(ValueError):
    """A params file is missing, unreadable or has faults; the message lists all of them."""


def read_yaml(path: Path) -> dict[str, Any]:
    """The content of the file; ParamsError where it is unreadable or not plain."""
    text = _read_text(path)
    yaml = YAML(typ="safe", pure=True)
    yaml.composer.warn_double_anchors = False  # an anchor that no alias names does nothing
    try:
        root = _composed(text, yaml)
        content = None if root is None else _content(root, (), yaml, set())
    except RecursionError:
        raise ParamsError(f"{path}: nested too deeply; expected sections of key: value") from None
    except ValueError as error:
        raise ParamsError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        found = "nothing" if content is None else shown(content)
        raise ParamsError(f"{path}: expected sections (key: value), found {found}")
    return content


def as_key(part: object) -> str:
    """A key as messages show it: on one line, and not endless."""
    text = str(part)
    return text if text.isprintable() and len(text) <= 60 else shown(text)


def shown(value: object) -> str:
    """The value as YAML writes it, cut where it is endless."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and abs(value) > 10**40:
        return f"a number of about {value.bit_length() * 3 // 10} digits"
    value = _without_secrets(value)
    limited = reprlib.Repr()
    limited.maxstring = limited.maxother = 60
    limited.maxlevel, limited.maxlist, limited.maxdict = 3, 4, 4
    return limited.repr(value)


def _without_secrets(value: object) -> object:
    """The value without user, password and query of each address in it."""
    if isinstance(value, str):
        return re.sub(r"(://[^\s?]*)\?\S*", r"\1?…", re.sub(r"(?<=://)\S*@", "…@", value))
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    return value


def _read_text(path: Path) -> str:
    if path.exists() and not path.is_file():
        raise ParamsError(f"{path}: not a file; it must be a YAML file of sections")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ParamsError(
            f"{path}: no such file; run the stage in the folder that holds params.yaml"
        ) from None
    except OSError as error:
        raise ParamsError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > MAX_BYTES:
        raise ParamsError(
            f"{path}: over {MAX_BYTES} bytes, so no params file; text to train on has its own files"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        found = "it looks like UTF-16" if is_utf16 else f"at byte {error.start}"
        raise ParamsError(f"{path}: not UTF-8 ({found}); save the file as UTF-8") from None


def _composed(text: str, yaml: YAML) -> Node | None:
    """The text's tree, None where it has no content; ValueError with the line where it is no YAML."""
    try:
        root: Node | None = yaml.compose(text)
        return root
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = f"U+{ord(text[error.position]):04X}"
        raise ValueError(
            f"line {line}: the character {character} is not allowed in YAML; save the file as UTF-8 text"
        ) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem).removeprefix("but ").split())[:200]
        tab = " (indent with spaces)" if r"'\t'" in problem else ""
        raise ValueError(
            f"not valid YAML: line {mark.line + 1}, column {mark.column + 1}: {problem}{tab}"
        ) from None
    except ValueError as error:  # an escape beyond Unicode
        raise ValueError(f"not valid YAML: {error}") from None


def _content(node: Node, keys: tuple[str, ...], yaml: YAML, seen: set[int]) -> Any:
    """What the node stands for; ValueError with line and key where that is not plain."""
    key = ".".join(map(as_key, keys)) or "the file"
    where = f"line {node.start_mark.line + 1}: {key}"
    if id(node) in seen:
        raise ValueError(f"{key}: an alias (*name) is not allowed; write the value itself")
    seen.add(id(node))
    if node.tag not in _KINDS:
        raise ValueError(
            f"{where}: the tag {as_key(str(node.tag).replace(_TAG, '!!'))} is not allowed; write a plain value"
        )
    if isinstance(node, SequenceNode):
        return [_content(item, (*keys, str(number)), yaml, seen) for number, item in enumerate(node.value)]
    if isinstance(node, MappingNode):
        return _mapping(node, keys, yaml, seen)
    return _scalar(node, where, yaml)


def _mapping(node: MappingNode, keys: tuple[str, ...], yaml: YAML, seen: set[int]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = f"line {key_node.start_mark.line + 1}"
        if not isinstance(key_node, ScalarNode) or id(key_node) in seen:
            raise ValueError(f"{line}: a key must be a word")
        seen.add(id(key_node))
        name = key_node.value
        if name == "<<":
            raise ValueError(f"{line}: a merge key (<<) is not allowed; write the keys themselves")
        if name in content:
            raise ValueError(
                f"{line}: duplicate key {'.'.join(map(as_key, (*keys, name)))}; keep one of them"
            )
        content[name] = _content(value_node, (*keys, name), yaml, seen)
    return content


def _scalar(node: Node, where: str, yaml: YAML) -> Any:
    """The scalar's value; one that its kind cannot hold stays text, and the table of knobs refuses it."""
    try:
        node.value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where}: {shown(node.value)} has half of a character (a lone surrogate)") from None
    if node.tag == f"{_TAG}timestamp":
        return node.value
    try:
        return yaml.constructor.construct_object(node)
    except (ValueError, LookupError):
        return node.value
