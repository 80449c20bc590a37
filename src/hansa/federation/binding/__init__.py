"""Chooses the target of each proxy pod: what a pod asks for, what targets have left, and which choices failed. Pure.

Watching and writing is left to `federation.binder`, creating delegates to the engine.
"""
