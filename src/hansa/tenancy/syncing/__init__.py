"""Which tenants are synced to which super clusters: members, links, credentials, conditions, service ranges."""
