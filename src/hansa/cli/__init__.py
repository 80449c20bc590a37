"""The command line: `hansa` and its subcommands, and `kubectl vc`."""
