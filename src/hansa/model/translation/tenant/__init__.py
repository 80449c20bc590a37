"""How a tenant's objects look in the super cluster, and what the super cluster tells its tenants. One file a kind."""
