"""Nodes of local clusters: simulated ones (kwok), and real ones in Linux namespaces with a network between them.

Real nodes do not change the machine's own network or root file system, and are removed completely. Starting control
planes is left to `control_plane`.
"""
