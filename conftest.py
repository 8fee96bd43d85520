"""Registers the plugin, nothing more."""

pytest_plugins = ["suite.plugin"]
