"""Computers made of Linux namespaces: hosts for control planes and real nodes, and the network between them.

Nothing of it touches the machine's own network, root file system or settings, and all of it ends without a trace.
"""
