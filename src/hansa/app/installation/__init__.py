"""`hansa install` and `hansa uninstall`: the programs of one mode in a cluster, as the Helm chart renders them."""
