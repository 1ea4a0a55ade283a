"""The pure packages do no IO and wait for nothing; in the runtime only named modules write to the API (A1).

import-linter looks at imports alone; this reads what the code does. What it does in a whole run is watched
in behaviour/test_writers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "pilotage"
PURE = (
    "api",
    "state",
    "framework",
    "plugins",
    "scheduling",
    "calls",
    "localcluster/store",
    "localcluster/rest",
)
# What pure code may do all the same, and why.
EXCEPTIONS = {
    ("scheduling/extenders_binding.py", "async def bind"): "a Bind plugin's async form: the runtime runs it",
    ("scheduling/extenders_binding.py", "await"): "of the query that the runtime handed to it",
    ("scheduling/extenders_outside.py", "async def _nobody"): "a query's place while nobody carries queries",
    ("plugins/default_preemption.py", "now()"): "of the engine's handle: the time that came with the event",
    ("localcluster/rest/protobuf.py", "import importlib"): "reads a table of this package, once",
    ("localcluster/rest/protobuf.py", "read_bytes()"): "the same",
    ("localcluster/rest/schema.py", "import importlib"): "reads a table of this package, once",
    ("localcluster/rest/schema.py", "read_bytes()"): "the same",
}
WORLD = {
    *("asyncio", "concurrent", "threading", "multiprocessing", "subprocess", "signal", "queue", "sched"),
    *("socket", "ssl", "select", "selectors", "socketserver", "http", "urllib", "aiohttp", "uvloop"),
    *("os", "io", "shutil", "tempfile", "glob", "mmap", "fcntl", "ctypes", "sqlite3"),
    *("time", "random", "secrets", "uuid", "logging", "warnings", "importlib", "runpy", "builtins"),
}
# Of a package above, what only computes.
HARMLESS = {"urllib.parse"}
DOERS = {"open", "eval", "exec", "compile", "input", "print", "__import__", "breakpoint"}
# As methods, of whatever object: clocks, files, and numpy's chance without a seed.
METHODS = {
    *("now", "utcnow", "today", "sleep", "monotonic", "perf_counter"),
    *("read_text", "read_bytes", "write_text", "write_bytes", "urandom", "uuid4"),
}
WRITE_VERBS = {"create", "update", "patch", "delete", "delete_collection", "apply"}
# Who in the runtime may send or pass on requests that write.
WRITERS = {
    "runtime/dispatcher.py": "what the call queue hands out",
    "runtime/leader_election.py": "the lease and the events of it: whoever may not lead must know at once",
    "runtime/leading.py": "passes on, and keeps back what a replica that does not lead would write",
    "runtime/metrics_rest.py": "passes on and measures",
}


def modules(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages:
        for path in sorted((SOURCE / package).rglob("*.py")):
            yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())


def deeds(tree: ast.AST) -> set[str]:
    """What the code does that pure code may not."""
    return {deed for node in ast.walk(tree) for deed in _deeds_of(node)}


def _deeds_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.AsyncFunctionDef):
        yield f"async def {node.name}"
    elif isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
        yield {"Await": "await", "AsyncFor": "async for", "AsyncWith": "async with"}[type(node).__name__]
    elif isinstance(node, ast.comprehension) and node.is_async:
        yield "async for"
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imports(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for name in names:
        if name not in HARMLESS and name.split(".")[0] in WORLD:
            yield f"import {name.split('.')[0]}"


def _calls(node: ast.Call) -> Iterator[str]:
    called = node.func
    if isinstance(called, ast.Name) and called.id in DOERS:
        yield f"{called.id}()"
    if not isinstance(called, ast.Attribute):
        return
    if called.attr in METHODS:
        yield f"{called.attr}()"
    if called.attr == "default_rng" and not node.args:
        yield "default_rng() without a seed"
    if isinstance(called.value, ast.Attribute) and ast.unparse(called.value) in ("np.random", "numpy.random"):
        yield from () if called.attr == "default_rng" else (f"np.random.{called.attr}()",)


def writes(tree: ast.AST) -> bool:
    """Whether it sends requests of its own, or asks a client for something that writes."""
    attributes = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pilotage.client")
        for alias in node.names
    }
    return "request" in attributes or bool("ApiClient" in imported and WRITE_VERBS & attributes)


@pytest.mark.parametrize("package", PURE)
def test_pure_code_does_nothing_outside(package: str) -> None:
    found = dict(modules(package))
    assert found, package
    done = {(name, deed) for name, tree in found.items() for deed in deeds(tree)}
    assert done - EXCEPTIONS.keys() == set()


def test_every_exception_is_still_one() -> None:
    done = {(name, deed) for name, tree in modules(*PURE) for deed in deeds(tree)}
    assert EXCEPTIONS.keys() - done == set()


def test_in_the_runtime_only_named_modules_write() -> None:
    assert {name for name, tree in modules("runtime") if writes(tree)} == WRITERS.keys()


@pytest.mark.parametrize(
    ("code", "deed"),
    [
        ("import asyncio", "import asyncio"),
        ("def f():\n    import os.path", "import os"),
        ("from time import sleep", "import time"),
        ("from concurrent.futures import Executor", "import concurrent"),
        ("import importlib", "import importlib"),
        ("async def f(): pass", "async def f"),
        ("async def f():\n    await g()", "await"),
        ("async def f():\n    async with g(): pass", "async with"),
        ("async def f():\n    return [x async for x in g()]", "async for"),
        ("open('x')", "open()"),
        ("__import__('os')", "__import__()"),
        ("eval('1')", "eval()"),
        ("datetime.now(UTC)", "now()"),
        ("path.read_text()", "read_text()"),
        ("np.random.default_rng()", "default_rng() without a seed"),
        ("np.random.shuffle(x)", "np.random.shuffle()"),
    ],
)
def test_the_check_sees(code: str, deed: str) -> None:
    assert deed in deeds(ast.parse(code))


@pytest.mark.parametrize(
    "code", ["from urllib.parse import quote", "re.compile('x')", "np.random.default_rng(1)", "now = 1.0"]
)
def test_the_check_lets_pass(code: str) -> None:
    assert deeds(ast.parse(code)) == set()


@pytest.mark.parametrize(
    ("code", "is_writing"),
    [
        ("transport.request(r)", True),
        ("from pilotage.client.api import ApiClient\napi.create(kind, body)", True),
        ("from pilotage.client.api import ApiClient\napi.list(kind)", False),
        ("counts.update(x)", False),
    ],
)
def test_the_check_sees_writers(code: str, is_writing: bool) -> None:
    assert writes(ast.parse(code)) is is_writing
