"""The federation of source and target clusters: their API types, their controllers, summaries, and the binder of pods.

Syncing objects is left to the engine, the rules of proxy and delegate pods to the mode.
"""
