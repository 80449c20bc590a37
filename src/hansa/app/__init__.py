"""The programs of `hansa`: makes components from settings and runs them. The only place that wires all parts."""
