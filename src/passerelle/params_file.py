"""Reading a params file: YAML to frozen, typed values, or one line for each of its faults."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from passerelle.config import VARIANT_SECTIONS, Params, Section
from passerelle.plain_yaml import ParamsError, as_key, read_yaml, shown

MAX_LINES = 20
"""Faults that a message lists; of more it gives their number."""

_PLAINER = {
    "bool_type": "input should be true or false",
    "model_type": "input should be a section, with its keys below it",
}

StageParams = TypeVar("StageParams", bound=Section)


def load_params(
    stage: type[StageParams], path: Path = Path("params.yaml"), *, whole: type[Section] = Params
) -> StageParams:
    """The sections that `stage` names, after the whole file has been checked against `whole`.

    A pipeline's file without `root`, where the folder above holds a `params.yaml` too, is that of a variant:
    what it says replaces what that one says, key by key. Raises ParamsError with one line for each fault: file,
    key, value, and what is allowed.
    """
    sections = read_yaml(path)
    above = path.parent / ".." / path.name if path.parent == Path() else path.parent.parent / path.name
    own: dict[str, Any] = {}
    if "root" in whole.model_fields and "root" not in sections and above.is_file():
        own, sections = sections, _merged(read_yaml(above), sections, path)
    try:
        params = whole.model_validate(sections)
    except ValidationError as error:
        files = [path if not own or _is_set(fault["loc"], own) else above for fault in error.errors()]
        lines = [f"{file}: {line}" for file, line in zip(files, fault_lines(error, whole), strict=True)]
        more = [f"{path}: and {len(lines) - MAX_LINES} more faults"] if len(lines) > MAX_LINES else []
        raise ParamsError("\n".join(lines[:MAX_LINES] + more)) from None
    return stage.model_validate({name: getattr(params, name) for name in stage.model_fields})


def fault_lines(error: ValidationError, whole: type[BaseModel]) -> list[str]:
    """One line for each of pydantic's faults of a `whole`: key, what is allowed, and the value found."""
    return [_described(fault, whole) for fault in error.errors()]


def _merged(sections: dict[str, Any], own: dict[str, Any], path: Path) -> dict[str, Any]:
    """`sections` with the values that the variant's file at `path` sets."""
    merged = dict(sections)
    for name, values in own.items():
        if name not in VARIANT_SECTIONS:
            raise ParamsError(
                f"{path}: {as_key(name)}: a variant may change {', '.join(VARIANT_SECTIONS)}, since the stages before "
                "training run once for all variants"
            )
        old = sections.get(name)
        merged[name] = {**old, **values} if isinstance(old, dict) and isinstance(values, dict) else values
    return merged


def _is_set(location: tuple[str | int, ...], own: dict[str, Any]) -> bool:
    """Whether a variant's own sections name the key at which a fault was found."""
    section, *keys = location
    values = own.get(str(section))
    return section in own and (not keys or not isinstance(values, dict) or keys[0] in values)


def _described(fault: Any, whole: type[BaseModel]) -> str:
    """One line for one of pydantic's faults: key, what is wrong, and the value found."""
    key = ".".join(as_key(part) for part in fault["loc"])
    kind, value = fault["type"], fault["input"]
    if kind == "extra_forbidden":
        near = _near(fault["loc"], whole)
        known = "see the comments in the project's params.yaml for the known ones"
        return f"{key}: unknown key; {f'did you mean {near}?' if near else known}"
    if kind == "missing":
        return f"{key}: missing; add it (see the project's params.yaml)"
    message = str(fault["ctx"]["error"]) if kind == "value_error" else fault["msg"]
    if kind == "value_error" and isinstance(value, dict):  # of a section as a whole: it names keys and values
        return f"{key}: {message}" if key else message
    message = _PLAINER.get(kind, message[0].lower() + message[1:])
    return f"{key}: {message}, but is {shown(value)}"


def _near(location: tuple[int | str, ...], whole: type[BaseModel]) -> str | None:
    """The known key that an unknown one is most like, or that has its name in another section."""
    *parents, name = map(str, location)
    sections = {key: field.annotation for key, field in whole.model_fields.items()}
    section = whole if not parents else sections.get(parents[0])
    known = section.model_fields if isinstance(section, type) and issubclass(section, BaseModel) else {}
    if near := get_close_matches(name, known, n=1):
        return near[0]
    for other, kind in sections.items():
        if isinstance(kind, type) and issubclass(kind, BaseModel) and name in kind.model_fields:
            return f"{other}.{name}"
    return None
