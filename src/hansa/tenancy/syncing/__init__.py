"""Which tenants are synced to which super clusters: members, routes, credentials, conditions, service ranges."""
