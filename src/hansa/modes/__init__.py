"""The modes: tensile, virtualcluster and admiralty. Each is a table of rules for the engine, with its settings."""
