"""`hansa doctor`: what keeps Hansa from working in some clusters, why it matters, and how to fix it."""
