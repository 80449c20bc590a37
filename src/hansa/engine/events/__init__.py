"""Lower Events: watched once for each lower cluster and mirrored on the upper objects that they are about."""
