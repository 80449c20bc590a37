"""The modes: tensile and virtualcluster. Each is a table of rules for the engine, with its settings."""
