"""Scheduler configuration files, as commands take them."""

from __future__ import annotations

import rich_click as click

from pilotage.framework.registry import Registry
from pilotage.frontends.cli.failures import say
from pilotage.runtime.config import LoadedConfig, load_config
from pilotage.runtime.config_errors import ConfigError


def read_config(path: str, registry: Registry) -> LoadedConfig:
    """The file's settings; what is in it without effect is told on stderr. Raises ClickException."""
    try:
        loaded = load_config(path, registry)
    except ConfigError as problem:
        raise click.ClickException(config_fault(problem)) from None
    for warning in loaded.warnings:
        say(f"{path}: {warning}", prefix="warning: ")
    return loaded


def config_fault(problem: ConfigError) -> str:
    """One line for one problem, else one below the other."""
    if len(problem.problems) == 1:
        return f"{problem.source or 'scheduler configuration'}: {problem.problems[0]}"
    return str(problem)
