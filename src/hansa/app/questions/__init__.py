"""Questions about running systems: `hansa explain` and `hansa whatif`. They read once, and change nothing."""
