"""Admission webhooks: what is changed in, or refused to, an object before the API server stores it."""
