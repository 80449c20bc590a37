"""Where things go: views of clusters, verdicts with reasons, namespace slices. Watching and writing are shells."""
