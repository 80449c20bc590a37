"""Settings become components, and components programs: the only place where all parts are put together."""
