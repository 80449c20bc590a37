"""Admission webhooks: change or refuse objects before the API server stores them."""
