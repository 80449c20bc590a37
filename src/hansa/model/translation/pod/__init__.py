"""Pods: `down` is a list of small steps, `following` is what a lower pod takes up later, `status` is what it tells."""
