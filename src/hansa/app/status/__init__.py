"""`hansa status`: what Hansa runs in some clusters, and its problems, read once from their API servers."""
