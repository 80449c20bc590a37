"""The domain: which objects are synced, where to, under which name, how they are translated, and which writes result.

Pure: no I/O and no clock. The same pair always gives the same plan; the engine makes pairs and applies plans.
"""
