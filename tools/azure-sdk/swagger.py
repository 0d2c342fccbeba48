"""Microsoft's specification of AKS machines and node images, as Swagger 2.0 on standard output.

Machines can only be made in previews, and only the SDK for Python is there for the very preview that we use. It carries
what was generated from the specification: types of members, paths and statuses.
"""

import datetime
import enum
import inspect
import json
import re
import sys
import typing

from azure.mgmt.containerservice import models, operations

MODULE = inspect.getmodule(operations.MachinesOperations)

# Group, operation, what is sent and what comes back; a list comes back in pages.
OPERATIONS = [
    ("machines", "create_or_update", models.Machine, models.Machine),
    ("machines", "get", None, models.Machine),
    ("machines", "list", None, [models.Machine]),
    ("agent_pools", "delete_machines", models.AgentPoolDeleteMachinesParameter, None),
    ("container_service", "list_node_image_versions", None, [models.NodeImageVersion]),
]

# Members that the specification calls read-only and that AKS reads nevertheless: a machine is made of the image that is
# named, and what was read is written back when tags change.
WRITABLE = {"nodeImageVersion"}

SIMPLE = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bytes: {"type": "string"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string"},
    datetime.timedelta: {"type": "string"},
    typing.Any: {},
}

definitions: dict[str, typing.Any] = {}


def schema(of: typing.Any) -> dict[str, typing.Any]:
    """What is said about a value of a type."""
    if of in SIMPLE:
        return dict(SIMPLE[of])
    arguments = typing.get_args(of)
    origin = typing.get_origin(of)
    if origin is typing.Union:
        left = [each for each in arguments if each is not type(None)]
        # What may be a text or one of some texts grows from version to version.
        return schema(str if str in left else left[0])
    if origin is list:
        return {"type": "array", "items": schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema(arguments[1])}
    if origin is typing.Literal:
        return {"type": "string", "enum": [str(each.value if isinstance(each, enum.Enum) else each) for each in arguments]}
    name = of.__name__
    if name not in definitions:
        definitions[name] = {}
        definitions[name].update(members(of))
    return {"$ref": f"#/definitions/{name}"}


def members(of: typing.Any) -> dict[str, typing.Any]:
    """What is said about an object of a class."""
    of({})  # Only then does the class know its members.
    hints = typing.get_type_hints(of, vars(models) | {"_models": models})
    found, required = {}, []
    for attribute, field in of._attr_to_rest_field.items():
        name = field._rest_name
        found[name] = schema(hints[attribute])
        is_read_only = field._visibility == ["read"] and name not in WRITABLE
        if is_read_only:
            found[name]["readOnly"] = True
        elif type(None) not in typing.get_args(hints[attribute]):
            required.append(name)
    return {"type": "object", "properties": found} | ({"required": required} if required else {})


def operation(group: str, name: str, sent: typing.Any, answered: typing.Any) -> tuple[str, str, dict[str, typing.Any]]:
    """Path, method and what is said about an operation."""
    words = "".join(word.capitalize() for word in group.split("_"))
    of = getattr(operations, f"{words}Operations")
    is_long = hasattr(of, f"begin_{name}")
    asked = inspect.getsource(getattr(MODULE, f"build_{group}_{name}_request"))
    path = re.search(r'_url = "([^"]+)"', asked)[1]
    method = re.search(r'method="([A-Z]+)"', asked)[1]
    answers = inspect.getsource(getattr(of, f"_{name}_initial" if is_long else name))
    statuses = re.findall(r"\d+", re.search(r"status_code not in \[([\d, ]+)\]", answers)[1])
    if isinstance(answered, list):
        page = {"value": {"type": "array", "items": schema(answered[0])}, "nextLink": {"type": "string"}}
        body: dict[str, typing.Any] | None = {"type": "object", "properties": page}
    else:
        body = schema(answered) if answered else None
    parameters = [
        {"name": each, "in": "path", "required": True, "type": "string"} for each in re.findall(r"{(\w+)}", path)
    ]
    parameters.append({"name": "api-version", "in": "query", "required": True, "type": "string"})
    if sent:
        parameters.append({"name": "body", "in": "body", "required": True, "schema": schema(sent)})
    responses = {status: {"description": ""} | ({"schema": body} if body else {}) for status in statuses}
    responses["default"] = {"description": "", "schema": schema(models.ErrorResponse)}
    described = {
        "operationId": f"{group}_{name}",
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "parameters": parameters,
        "responses": responses,
    }
    return path, method.lower(), described | ({"x-ms-long-running-operation": True} if is_long else {})


def main() -> None:
    """Writes the document."""
    paths: dict[str, typing.Any] = {}
    for each in OPERATIONS:
        path, method, described = operation(*each)
        paths.setdefault(path, {})[method] = described
    version = re.search(r'"api-version", "([^"]+)"', inspect.getsource(MODULE.build_machines_list_request))[1]
    document = {
        "swagger": "2.0",
        "info": {"title": "containerservice", "version": version},
        "host": "management.azure.com",
        "schemes": ["https"],
        "paths": paths,
        "definitions": definitions,
    }
    json.dump(document, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
