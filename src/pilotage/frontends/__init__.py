"""CLI, reports, explain; with testing the only places where parts are wired together."""
