"""How a tenant's objects are translated to the super cluster and back. One module per kind; all of it is pure."""
